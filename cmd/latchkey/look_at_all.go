package main

// lookAtAll calls f for each master. f looks at all keys there, and calls after with how many it has seen so far. On a
// terminal a bar shows the progress of the first look, until it has ended. Later looks have a picture before them.
func (j *job) lookAtAll(f func(n *node, after func(seen int)) error) ([]away, error) {
	masters, err := j.redis.masters(j.ctx)
	if err != nil {
		return nil, err
	}
	bar := &progress{}
	if !j.looked && isTerminal(j.out.stderr) {
		bar = newProgress(j.out.stderr, j.countKeys(masters))
		defer bar.end()
	}
	j.looked = true
	before := 0 // on other masters
	return j.each(masters, func(n *node) error {
		here := 0
		err := f(n, func(seen int) {
			here = seen
			bar.set(int64(before + here))
		})
		before += here
		return err
	})
}

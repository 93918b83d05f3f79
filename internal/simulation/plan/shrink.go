package plan

import (
	"slices"
	"time"
)

// Shrink returns the smallest plan it finds for which fails is still true. It stops when nothing can be
// left out, or when enough returns true.
func Shrink(p Plan, fails func(Plan) bool, enough func() bool) Plan {
	s := &shrinker{best: p, fails: fails, enough: enough}
	for size := -1; size != s.size() && !enough(); {
		size = s.size()
		s.requests()
		s.faults()
		s.observer()
		s.simplify()
		s.processes()
	}
	return s.best
}

type shrinker struct {
	best   Plan
	fails  func(Plan) bool
	enough func() bool
}

// size is the number that Shrink reduces.
func (s *shrinker) size() (n int) {
	n = 10*len(s.best.Requests) + 10*len(s.best.Faults) + 10*s.best.Processes
	for _, r := range s.best.Requests {
		n += r.size()
	}
	if s.best.Observer != Well {
		n += 10
	}
	return n
}

// size is larger for a request that is harder to understand.
func (r Request) size() (n int) {
	for _, odd := range []bool{r.Action != Append, r.Mode != Exclusive, r.Before > 0, r.After > 0, r.Leave > 0, r.Heeds, r.Large, r.Process > 0, r.User > 0} {
		if odd {
			n++
		}
	}
	return n
}

// A smaller plan may need different luck on the network to fail.
const seeds = 3

// try keeps a plan if it fails, too.
func (s *shrinker) try(p Plan) bool {
	for range seeds {
		if s.enough() {
			return false
		}
		if s.fails(p) {
			s.best = p
			return true
		}
		p.Seed += 1_000_000_007
	}
	return false
}

// requests leaves out requests: half of them, a quarter, down to one.
func (s *shrinker) requests() {
	cut(len(s.best.Requests), func() int { return len(s.best.Requests) }, func(from, to int) bool {
		p := s.best
		p.Requests = slices.Delete(slices.Clone(p.Requests), from, to)
		return s.try(p)
	})
}

func (s *shrinker) faults() {
	cut(len(s.best.Faults), func() int { return len(s.best.Faults) }, func(from, to int) bool {
		p := s.best
		p.Faults = slices.Delete(slices.Clone(p.Faults), from, to)
		return s.try(p)
	})
}

func (s *shrinker) observer() {
	if p := s.best; p.Observer != Well {
		p.Observer = Well
		s.try(p)
	}
}

// cut tries to leave out parts of a list, in ever smaller pieces, from its end.
func cut(size int, length func() int, without func(from, to int) bool) {
	for size = (size + 1) / 2; size > 0; size /= 2 {
		for to := length(); to > 0; {
			from := max(0, to-size)
			without(from, to)
			to = min(from, length())
		}
	}
}

// simplify replaces features of requests by more usual ones, one by one.
func (s *shrinker) simplify() {
	for i := range s.best.Requests {
		for _, change := range []func(r *Request){
			func(r *Request) { r.Action = Append },
			func(r *Request) { r.Mode = Exclusive },
			func(r *Request) { r.After = 0 },
			func(r *Request) { r.Before = 0 },
			func(r *Request) { r.Leave, r.Deadline = 0, false },
			func(r *Request) { r.Heeds = false },
			func(r *Request) { r.Large = false },
			func(r *Request) { r.Process = 0 },
			func(r *Request) { r.User = 0 },
			func(r *Request) { r.Before = r.Before.Round(time.Millisecond) },
		} {
			p := s.best
			p.Requests = slices.Clone(p.Requests)
			change(&p.Requests[i])
			if p.Requests[i] != s.best.Requests[i] {
				s.try(p)
			}
		}
	}
}

// processes leaves out the last processes.
func (s *shrinker) processes() {
	for s.best.Processes > 1 {
		p := s.best
		p.Processes--
		last := p.Processes
		used := slices.ContainsFunc(p.Requests, func(r Request) bool { return r.Process == last }) ||
			slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.Process == last })
		if used || !s.try(p) {
			return
		}
	}
}

package lockertest

import (
	"strings"

	"github.com/a2139e8d/latchkey/locker"
)

// What can be no key is refused, by an error that says why, and Redis is not
// asked. All other strings are keys.
func badKeys(c *check) {
	p := c.New(patient)
	for _, key := range []string{"", strings.Repeat("k", locker.MaxKey+1)} {
		c.refused(p, key, "the key has")
	}
	for _, key := range []string{strings.Repeat("k", locker.MaxKey), "\x00\xff", "a\r\nb", "{}", " "} {
		l := c.lock(p, key)
		c.held(key)
		c.unlock(l)
	}
	c.nothingLeft()
}

// Options that make no sense are refused, by an error that names the one that is
// wrong, and Redis is not asked.
func badOptions(c *check) {
	for name, change := range map[string]func(o *locker.Options){
		"Options.Lease":      func(o *locker.Options) { o.Lease = -1 },
		"Options.Wait":       func(o *locker.Options) { o.Wait = -1 },
		"Options.MaxHold":    func(o *locker.Options) { o.MaxHold = -1 },
		"Options.MaxWaiters": func(o *locker.Options) { o.MaxWaiters = -1 },
		"Options.Timeout":    func(o *locker.Options) { o.Timeout = -1 },
	} {
		c.refused(c.New(with(change)), "k", name)
	}
	c.nothingLeft()
}

// refused checks that p, which has not asked Redis for anything yet, gets an error that says so.
func (c *check) refused(p *Process, key, says string) {
	c.Helper()
	_, err := p.Lock(c.ctx, key)
	if err == nil || !strings.Contains(err.Error(), says) {
		c.Errorf("a key of %d bytes: error %v, want one that says %q", len(key), err, says)
	}
	if n := p.Exchanges(); n != 0 {
		c.Errorf("%d exchanges, though %v", n, err)
	}
}

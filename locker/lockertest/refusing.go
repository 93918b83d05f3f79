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
		_, err := p.Lock(c.ctx, key)
		if err == nil || !strings.Contains(err.Error(), "the key has") {
			c.Errorf("a key of %d bytes: error %v does not tell what is wrong", len(key), err)
		}
	}
	if n := p.Exchanges(); n != 0 {
		c.Errorf("%d exchanges about what is no key", n)
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
		p := c.New(with(change))
		_, err := p.Lock(c.ctx, "k")
		if err == nil || !strings.Contains(err.Error(), name) {
			c.Errorf("%s is bad: error %v does not tell so", name, err)
		}
		if n := p.Exchanges(); n != 0 {
			c.Errorf("%s is bad: %d exchanges all the same", name, n)
		}
	}
	c.nothingLeft()
}

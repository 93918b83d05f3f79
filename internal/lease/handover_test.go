package lease

import (
	"testing"
	"time"
)

// HandOver gives away what is held and nothing else, with the time that is left of it.
func TestHandOverWithoutExchange(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(c *crowd, l *Lease)
		none   bool
	}{
		"to the next one":       {before: func(*crowd, *Lease) {}},
		"nobody waits":          {none: true, before: func(_ *crowd, l *Lease) { l.Dismiss(ErrTimeout) }},
		"others are to have it": {none: true, before: func(_ *crowd, l *Lease) { l.quota.began = time.Now().Add(-maxTimeAlone) }},
		"it was given back":     {none: true, before: func(_ *crowd, l *Lease) { l.Stop(false); l.Leave() }},
		"it was lost": {none: true, before: func(c *crowd, l *Lease) {
			c.f.Put("k", "another", s)
			l.Lose(ErrLost)
		}},
		"it is over, though nobody knows yet": {none: true, before: func(_ *crowd, l *Lease) {
			l.group.release(l)
			l.quota.began = time.Now().Add(DefaultLease)
			time.Sleep(DefaultLease)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c, l := newCrowd(t, 1)
				before := len(c.f.Calls())
				tt.before(c, l)
				end, known := l.end, l.state == lost
				next, held, _ := l.Stop(false)
				if tt.none {
					if held && next.Token != "" {
						t.Fatal("it could be handed over")
					}
					l.Leave()
					if !known { // else another has it
						c.f.Put("k", "", 0)
					}
					if r := <-c.got[0]; r.err == nil {
						mustUnlock(t, r.lease)
					}
					c.wantRest()
					return
				}
				heir := l.HandOver(next, false)
				if l := c.holds(0); l != heir || l.end != end || l.Data() != c.f {
					t.Error("it is another lease that came")
				}
				if n := len(c.f.Calls()); n != before {
					t.Errorf("%d exchanges", n-before)
				}
				if l.Validity() != 0 || l.Unlock(t.Context()) != nil {
					t.Error("the one that gave it away still has it")
				}
				c.f.Put("k", heir.Token(), s)
				mustUnlock(t, heir)
				c.wantRest()
			})
		})
	}
}

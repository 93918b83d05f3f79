package lease

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A caller that gives up waiting takes the place out of the queue, with one round trip.
func TestQuit(t *testing.T) {
	gone := errors.New("gone")
	type situation struct {
		wait time.Duration
		want error // nil: the algorithm panics
	}
	each(t, map[string]situation{
		"cancelled":      {time.Minute, gone},
		"its time is up": {s, ErrTimeout},
		"it panics":      {time.Minute, nil},
	}, func(t *testing.T, tt situation) {
		server := redistest.Memory(t)
		holder, p := newProcess(t, server), newProcess(t, server)
		l := holder.mustLock(t, slow)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2*s, func() { cancel(gone) })
		o := slow
		o.Wait = tt.wait
		if tt.want != nil {
			wantError(t, (<-p.joins(t, ctx, server, o)).err, tt.want)
		} else {
			p.spin.take = func(c call) error {
				if _ = c.do(); c.n == 3 {
					panic("a bug")
				}
				return nil
			}
			go func() {
				defer func() { _ = recover() }()
				_, _ = p.lock(t, o)
			}()
		}
		redistest.Elapse(s)
		wantNoQueue(t, server)
		p.spin.wantCalls(t, "Quit", 1)
		if tt.want != nil {
			p.spin.wantCalls(t, "Release", 0) // nothing was taken
		}
		mustUnlock(t, l)
	})
}

// A caller gives up at a bad moment, or the round trip that takes its place out of the queue fails. The next
// process still gets the lock as soon as it is released.
func TestQuitIsInNobodysWay(t *testing.T) {
	type situation struct {
		quit  func(call) error
		turn  bool // the turn comes during the Quit
		takes bool // the caller's context ends as it takes the lock
	}
	each(t, map[string]situation{
		"as the turn comes":          {turn: true},
		"as it takes the lock":       {takes: true},
		"no answer":                  {quit: first(lands(errNoReply, 0))},
		"not sent":                   {quit: first(fails(errRefused))},
		"comes later":                {quit: first(lands(errNoReply, s))},
		"says another client":        {quit: first(fails(errOther))},
		"each command is done twice": {quit: lands(nil, 0, 0)},
	}, func(t *testing.T, tt situation) {
		server := redistest.Memory(t)
		holder, p, next := newProcess(t, server), newProcess(t, server), newProcess(t, server)
		l := holder.mustLock(t, slow)
		p.spin.quit = tt.quit
		ctx, cancel := context.WithCancel(t.Context())
		if tt.turn {
			p.spin.quit = func(c call) error { mustUnlock(t, l); return c.do() }
		}
		going, got := p.joins(t, ctx, server, slow), next.joins(t, t.Context(), server, slow)
		begin := time.Now()
		if tt.takes {
			p.spin.take = func(c call) error { cancel(); return c.do() }
		} else if cancel(); !tt.turn {
			redistest.Elapse(s / 10)
			begin = time.Now()
		}
		if !tt.turn {
			mustUnlock(t, l)
		}
		wantError(t, (<-going).err, context.Canceled)
		mustWin(t, got)
		wantTook(t, begin, 0)
	})
}

// The round trip that joins the queue, or takes the lock, fails, and is done late, even after the place was given
// up. Then the place is in the queue again, with no caller behind it, but not for long.
func TestQuitOfWhatComesLater(t *testing.T) {
	each(t, map[string][]time.Duration{
		"no answer":       {0},
		"soon":            {10 * time.Millisecond},
		"again and again": {0, s / 10, s},
		"half a lease":    {5 * s},
	}, func(t *testing.T, late []time.Duration) {
		server := redistest.Memory(t)
		holder, p := newProcess(t, server), newProcess(t, server)
		l := holder.mustLock(t, slow)
		p.spin.take = func(c call) error {
			if c.n == 1 {
				return c.do() // the first try has no place
			}
			return lands(errNoReply, late...)(c)
		}
		if _, err := p.lock(t, Options{}); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		wantNoQueue(t, server)
		redistest.Elapse(max(20*time.Millisecond, 2*slices.Max(late)) + 1)
		wantNoQueue(t, server)
		mustUnlock(t, l)
	})
}

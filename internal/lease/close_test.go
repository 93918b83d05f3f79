package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// Close ends the wait of all callers, of the one that has the turn as well, and the subscription, also
// one that is only being made. A lease that is held can still be given back. It may be closed twice.
func TestCloseEndsAllWaits(t *testing.T) {
	each(t, map[string]time.Duration{"with a subscription": 0, "while subscribing": s}, func(t *testing.T, takes time.Duration) {
		server := redistest.Memory(t)
		holder, p := newProcess(t, server), newProcess(t, server)
		p.line.takes = takes
		held, err := p.group.Lock(t.Context(), "another", p.spin, slow)
		if err != nil {
			t.Fatal(err)
		}
		l := holder.mustLock(t, slow)
		var waiting []<-chan result
		for range 3 {
			waiting = append(waiting, wait(t.Context(), p.group, p.spin, slow))
		}
		redistest.Elapse(s / 2)
		for range 2 {
			p.group.Close()
		}
		for _, got := range waiting {
			if r := <-got; !errors.Is(r.err, ErrClosed) || !errors.Is(r.err, ErrUnavailable) || !strings.Contains(r.err.Error(), "was closed") || r.took > s/2 {
				t.Errorf("one that waited got %v after %v", r.err, r.took)
			}
		}
		if _, err := p.lock(t, Options{}); !errors.Is(err, ErrClosed) {
			t.Errorf("one that comes later got %v", err)
		}
		redistest.Elapse(takes)
		p.line.want(t, 0, 1)
		mustUnlock(t, held)
		mustUnlock(t, l)
	})
}

// Who is asking Redis as the Group is closed, and its client with it, is told of that, too.
func TestCloseDuringAnExchange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{hooks{take: func(call) error {
			g.Close()
			return fmt.Errorf("%w: %w: the client is closed", ErrUnavailable, transport.ErrRefused)
		}}}
		if _, err := g.Lock(t.Context(), "k", &f, Options{}); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// Sweeps end with their Group, at once.
func TestCloseEndsSweeps(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{hooks{take: lands(errNoReply, 0)}}
		if _, err := g.Lock(t.Context(), "k", &f, Options{Lease: time.Hour}); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		redistest.Elapse(s)
		swept := len(f.Made("Release"))
		if swept < 3 {
			t.Errorf("swept %d times in a second", swept)
		}
		g.Close()
		g.Sweep(Options{Lease: s, Timeout: s}, true, func(context.Context) bool {
			t.Error("a sweep began after Close")
			return true
		})
		redistest.Elapse(time.Hour)
		f.wantCalls(t, "Release", swept)
	})
}

package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// Close ends the wait of all callers, of the one that has the turn as well, and the
// subscription. A lease that is held can still be given back. It may be closed twice.
func TestCloseEndsAllWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		site := newFakeSite(t)
		f := site.process()
		g := f.group()
		held, err := g.Lock(t.Context(), "another", f, Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := mustHave(t, site.process(), Options{MaxHold: time.Hour})
		const callers = 3
		failed := make(chan error, callers)
		for range callers {
			go func() {
				_, err := g.Lock(t.Context(), "k", f, Options{Wait: time.Hour})
				failed <- err
			}()
		}
		time.Sleep(time.Minute)
		begin := time.Now()
		for range 2 {
			g.Close()
		}
		for range callers {
			if err := <-failed; !errors.Is(err, ErrClosed) || !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "was closed") {
				t.Errorf("one that waited got %v", err)
			}
		}
		wantTook(t, "the end", begin, 0)
		if _, err := g.Lock(t.Context(), "k", f, Options{}); !errors.Is(err, ErrClosed) {
			t.Errorf("one that comes later got %v", err)
		}
		wantSubscriptions(t, &site.pubsub, 0, 1)
		mustUnlock(t, held)
		mustUnlock(t, l)
		time.Sleep(time.Minute) // the place runs out, as in Redis
		site.mu.Lock()
		clear(site.queues)
		site.mu.Unlock()
	})
}

// Who is asking Redis as the Group is closed, and its client with it, is told of that, too.
func TestCloseDuringAnExchange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{take: func(context.Context, int, func() (bool, error)) (bool, error) {
			g.Close()
			return false, fmt.Errorf("%w: %w: the client is closed", ErrUnavailable, transport.ErrRefused)
		}}
		if _, err := g.Lock(t.Context(), "k", &f, Options{}); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// A subscription that is only being made is closed, too, as soon as it is there.
func TestCloseWhileSubscribing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pubsub := fakePubSub{takes: s}
		g := Group{Notifiers: NewNotifiers(&pubsub)}
		p := g.Notifiers.place("k")
		synctest.Wait()
		g.Close()
		time.Sleep(s)
		wantSubscriptions(t, &pubsub, 0, 1)
		if p.isNotified() {
			t.Error("the place relies on it")
		}
		wantSubscriptions(t, &pubsub, 0, 1)
	})
}

// Sweeps end with their Group, at once.
func TestCloseEndsSweeps(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{take: func(_ context.Context, _ int, do func() (bool, error)) (bool, error) {
			do()
			return false, errNoReply
		}}
		if _, err := g.Lock(t.Context(), "k", &f, Options{Lease: time.Hour}); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		time.Sleep(s)
		swept := len(f.Made("Release"))
		if swept < 3 {
			t.Errorf("swept %d times in a second", swept)
		}
		g.Close()
		time.Sleep(time.Hour)
		if n := len(f.Made("Release")); n != swept {
			t.Errorf("swept %d times after Close", n-swept)
		}
		g.Sweep(Options{Lease: s, Timeout: s}, true, func(context.Context) bool {
			t.Error("a sweep began after Close")
			return true
		})
		time.Sleep(s)
	})
}

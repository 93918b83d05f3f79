package lease

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// inBubble runs f in virtual time. There synctest.Wait returns when everybody
// waits for something, so "has joined the line" and "still waits" are facts.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

// enterAs takes the turn at key, in line behind at most most others, for as long as ctx.
func enterAs(ctx context.Context, g *Group, key string, most int) error {
	o := &Options{Wait: 1000 * time.Hour, MaxWaiters: most}
	return g.enter(&Lease{key: key, group: g, options: o, caller: ctx, began: time.Now()})
}

// enter takes the turn at key, which is free or becomes so.
func enter(t *testing.T, g *Group, key string) {
	t.Helper()
	if err := enterAs(t.Context(), g, key, 100); err != nil {
		t.Errorf("enter: %v", err)
	}
}

// wantIdle says that l has forgotten all keys and alarms.
func wantIdle(t *testing.T, l *Group) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.keys) != 0 {
		t.Errorf("the idle line still knows %d keys", len(l.keys))
	}
	if l.held.first != nil || l.waits.first != nil {
		t.Error("the idle line still has alarms")
	}
}

func TestCallersAreServedInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var l Group
		var served []int
		enter(t, &l, "k")
		for i := range 10 {
			go func() {
				enter(t, &l, "k")
				served = append(served, i) // the turn guards it
				time.Sleep(time.Second)
				l.leave(&Lease{key: "k"})
			}()
			synctest.Wait() // i is in the line, before i+1
		}
		l.leave(&Lease{key: "k"})
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(served, want) {
			t.Errorf("served in the order %v", served)
		}
		wantIdle(t, &l)
	})
}

// Even without a test for races: of many that enter, one is in at a time.
func TestCallersLetsInOneAtATime(t *testing.T) {
	t.Parallel()
	var l Group
	n := 0 // guarded by the turn
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 20 {
				enter(t, &l, "k")
				n++
				l.leave(&Lease{key: "k"})
			}
		})
	}
	all.Wait()
	if n != 1000 {
		t.Errorf("counted %d of 1000", n)
	}
	wantIdle(t, &l)
}

func TestCallersKeysAreIndependent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var l Group
		enter(t, &l, "a")
		enter(t, &l, "b") // does not wait
		l.leave(&Lease{key: "a"})
		l.leave(&Lease{key: "b"})
		wantIdle(t, &l)
	})
}

func TestCallersAreFull(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var l Group
		ctx, cancel := context.WithCancel(t.Context())
		enter(t, &l, "k")
		for range 3 {
			go func() {
				if err := enterAs(ctx, &l, "k", 3); !errors.Is(err, context.Canceled) {
					t.Errorf("a waiter that gave up got %v", err)
				}
			}()
		}
		synctest.Wait()

		begin := time.Now()
		if err := enterAs(t.Context(), &l, "k", 3); !errors.Is(err, ErrTooManyWaiters) {
			t.Errorf("the fourth waiter got %v", err)
		}
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("it was told so after %v, not at once", waited)
		}
		enter(t, &l, "other") // has a line of its own
		l.leave(&Lease{key: "other"})

		cancel()
		synctest.Wait()
		l.leave(&Lease{key: "k"})
		wantIdle(t, &l)
	})
}

// Who gives up makes room at once, and the others keep their order.
func TestCallersWaiterGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var l Group
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		var served []string
		join := func(name string) {
			go func() {
				if err := enterAs(t.Context(), &l, "k", 3); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				served = append(served, name)
				l.leave(&Lease{key: "k"})
			}()
			synctest.Wait()
		}
		enter(t, &l, "k")
		join("first")
		gaveUp := make(chan error, 1)
		go func() { gaveUp <- enterAs(ctx, &l, "k", 3) }()
		synctest.Wait()
		join("third")

		cancel(gone)
		synctest.Wait()
		if err := <-gaveUp; err != gone {
			t.Errorf("error %v, want the cause of the cancellation", err)
		}
		join("fourth") // in a line of three: there is room again
		l.leave(&Lease{key: "k"})
		synctest.Wait()
		if want := []string{"first", "third", "fourth"}; !slices.Equal(served, want) {
			t.Errorf("served %q, want %q", served, want)
		}
		wantIdle(t, &l)
	})
}

// The turn comes to a waiter that is giving up just then: it has been woken by
// its context, but still stands in the line, since the test holds the line's
// mutex. The turn must go on to the next one, and not be lost with the waiter.
func TestCallersTurnComesWhileGivingUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var l Group
		ctx, cancel := context.WithCancel(t.Context())
		enter(t, &l, "k")
		var first error
		go func() { first = enterAs(ctx, &l, "k", 2) }()
		synctest.Wait()
		served := false
		go func() {
			enter(t, &l, "k")
			served = true
			l.leave(&Lease{key: "k"})
		}()
		synctest.Wait()

		l.mu.Lock()
		cancel()
		l.keys["k"].next().called <- nil
		l.mu.Unlock()
		synctest.Wait()
		if !errors.Is(first, context.Canceled) {
			t.Errorf("the waiter that gave up got %v", first)
		}
		if !served {
			t.Fatal("the turn was lost: the next waiter never got it")
		}
		wantIdle(t, &l)
	})
}

// The same with nobody behind: the key must not stay taken.
func TestCallersTurnComesToLastWhileGivingUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var l Group
		ctx, cancel := context.WithCancel(t.Context())
		enter(t, &l, "k")
		go func() {
			if enterAs(ctx, &l, "k", 2) == nil {
				t.Error("the waiter took the turn, so this test tests nothing")
			}
		}()
		synctest.Wait()
		l.mu.Lock()
		cancel()
		l.keys["k"].next().called <- nil
		l.mu.Unlock()
		synctest.Wait()
		wantIdle(t, &l)
	})
}

// Whoever waits when nobody can be served is sent away; whoever has the turn
// keeps it, and who comes later waits as ever.
func TestCallersDismissesItsWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l Group
		if err := enterAs(t.Context(), &l, "k", 9); err != nil {
			t.Fatal(err)
		}
		away := errors.New("away")
		got := make(chan error, 3)
		for range 3 {
			go func() { got <- enterAs(t.Context(), &l, "k", 9) }()
		}
		synctest.Wait()
		(&Lease{key: "k", group: &l}).Dismiss(away)
		for range 3 {
			if err := <-got; err != away {
				t.Errorf("a waiter was told %v", err)
			}
		}
		go func() { got <- enterAs(t.Context(), &l, "k", 9) }()
		synctest.Wait()
		l.leave(&Lease{key: "k"})
		if err := <-got; err != nil {
			t.Errorf("the next one was told %v", err)
		}
		l.leave(&Lease{key: "k"})
		if len(l.keys) != 0 {
			t.Errorf("%d keys are left", len(l.keys))
		}
	})
}

package locker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// forget makes nodes come back empty, as from a restart.
func forget(nodes ...*node) {
	for _, n := range nodes {
		n.Put("k", "", 0)
	}
}

// leave makes nodes answer nothing but errors.
func leave(nodes ...*node) {
	for _, n := range nodes {
		n.away.Store(true)
	}
}

// A lease lasts as long as a majority knows of it.
func TestRedlockLeaseNeedsAMajority(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(5)
		r := redlockOn(nodes, Options{Lease: 10 * s, MaxHold: time.Hour})
		l := lockOn(t, r)
		forget(nodes[0])
		leave(nodes[4])
		after(10*time.Minute, func() {
			if isLost(l) {
				t.Fatal("lost, though three of five nodes have it")
			}
		})
		forget(nodes[1])
		after(10*s/3, func() {
			if isLost(l) {
				t.Fatal("lost, though it may still be on three of five nodes")
			}
		})
		forget(nodes[2]) // now they say so
		after(10*s, func() {
			if !isLost(l) {
				t.Error("not lost, though two of five nodes have it")
			}
		})
	})
}

// What Extend and Unlock say, after something has happened to the nodes.
func TestRedlockLeaseErrors(t *testing.T) {
	steal := func(nodes ...*node) {
		for _, f := range nodes {
			f.Put("k", "another", time.Hour)
		}
	}
	for name, tt := range map[string]struct {
		happen func(n []*node)
		want   error
	}{
		"nothing":                        {func(n []*node) {}, nil},
		"a minority forgot":              {func(n []*node) { forget(n[0], n[1]) }, nil},
		"a minority is another's":        {func(n []*node) { steal(n[0], n[1]) }, nil},
		"a minority is away":             {func(n []*node) { leave(n[0], n[1]) }, nil},
		"a majority forgot":              {func(n []*node) { forget(n[0], n[1], n[2]) }, ErrExpired},
		"all forgot":                     {func(n []*node) { forget(n...) }, ErrExpired},
		"a majority is another's":        {func(n []*node) { steal(n[0], n[1], n[2]) }, ErrLost},
		"all are another's":              {func(n []*node) { steal(n...) }, ErrLost},
		"a majority is away":             {func(n []*node) { leave(n[0], n[1], n[2]) }, ErrUnavailable},
		"all are away":                   {func(n []*node) { leave(n...) }, ErrUnavailable},
		"two away, one forgot":           {func(n []*node) { leave(n[0], n[1]); forget(n[2]) }, ErrUnavailable},
		"two forgot, one away":           {func(n []*node) { forget(n[0], n[1]); leave(n[2]) }, ErrUnavailable},
		"three forgot, two away":         {func(n []*node) { forget(n[0], n[1], n[2]); leave(n[3], n[4]) }, ErrExpired},
		"two another's, one forgot":      {func(n []*node) { steal(n[0], n[1]); forget(n[2]) }, ErrExpired},
		"two another's, two forgot, one": {func(n []*node) { steal(n[0], n[1]); forget(n[2], n[3]); leave(n[4]) }, ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				for step, do := range map[string]func(*Lease) error{
					"Extend": func(l *Lease) error { return l.Extend(t.Context(), time.Minute) },
					"Unlock": func(l *Lease) error { return l.Unlock(t.Context()) },
				} {
					nodes := newNodes(5)
					r := redlockOn(nodes, Options{})
					l := lockOn(t, r)
					tt.happen(nodes)
					if err := do(l); !errors.Is(err, tt.want) {
						t.Errorf("%s: error %v, want %v", step, err, tt.want)
					}
					synctest.Wait()
					if want := tt.want == ErrLost || tt.want == ErrExpired; step == "Extend" && isLost(l) != want {
						t.Errorf("Extend: lost is %v", isLost(l))
					}
					l.Unlock(t.Context())
					wantIdle(t, &r.lock.group)
				}
			})
		})
	}
}

// An extension ends the drift before the time it was asked for. Close to MaxHold
// that must not lead to one more tiny extension after the other.
func TestRedlockWatchdogStopsAtMaxHold(t *testing.T) {
	for _, maxHold := range []time.Duration{9 * s, 9*s + 1, 12 * s, 15 * s, 20 * s, time.Minute, time.Minute + s/7} {
		t.Run(maxHold.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				nodes := newNodes(3)
				r := redlockOn(nodes, Options{Lease: 9 * s, MaxHold: maxHold})
				begin := time.Now()
				l := lockOn(t, r)
				<-l.Lost()
				const drift = 9*s/100 + 2*time.Millisecond
				if held := time.Since(begin); held > maxHold || held < maxHold-drift {
					t.Errorf("held for %v", held)
				}
				extensions := nodes[0].Made("Extend")
				if most := int(maxHold / (3*s - drift)); len(extensions) > most {
					t.Errorf("%d extensions, want at most %d", len(extensions), most)
				}
				for _, c := range extensions {
					if c.D < 6*s {
						t.Errorf("after %v it was extended for %v", c.At.Sub(begin), c.D)
					}
				}
				l.Unlock(t.Context())
			})
		})
	}
}

// A slow node is told to extend and to release, even though nobody waits for its
// answer by then: else its votes would be lost, or block others.
func TestRedlockTellsTheSlow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		r := redlockOn(nodes, Options{Lease: 9 * s})
		late := func(ctx context.Context, _ int, do func() error) error {
			time.Sleep(s / 2)
			if ctx.Err() != nil {
				return ctx.Err() // there was no connection to be had
			}
			return do()
		}
		nodes[2].extend, nodes[2].release = late, late // when the others have answered
		l := lockOn(t, r)
		after(time.Minute/2, func() {
			if n := holders(nodes); n != 3 {
				t.Errorf("the lock is on %d nodes", n)
			}
		})
		mustUnlock(t, l)
		after(s, func() {
			if n := holders(nodes); n != 0 {
				t.Errorf("%d nodes are still locked", n)
			}
		})
	})
}

// Extend does not outlast its context, nor the lease: it is told what the nodes
// have said by then.
func TestRedlockExtendKeepsToItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		r := redlockOn(nodes, Options{Lease: 9 * s, Timeout: 2 * s})
		l := lockOn(t, r)
		nodes[0].slow(s)
		nodes[1].slow(s)
		ctx, cancel := context.WithTimeout(t.Context(), s/2)
		defer cancel()
		begin := time.Now()
		if err := l.Extend(ctx, time.Minute); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Extend: %v", err)
		}
		wantTook(t, "Extend", begin, s/2)
		mustUnlock(t, l) // which waits its turn
	})
}

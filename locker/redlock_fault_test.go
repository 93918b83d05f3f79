package locker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A try that fails is undone on every node, whatever that had said: also a no or
// a refusal may come from something other than the node, and a lost answer from
// a node that did it.
func TestRedlockReleasesEverywhere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(5)
		nodes[1].Put("k", "another", time.Hour)
		nodes[2].take = func(_ context.Context, _ int, do func() (bool, error)) (bool, error) { do(); return false, errNoReply }
		nodes[3].take = func(context.Context, int, func() (bool, error)) (bool, error) { return false, errRefused }
		r := redlockOn(nodes, Options{Wait: NoWait})
		if _, err := r.Lock(t.Context(), "k"); !errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
		synctest.Wait()
		for i, n := range nodes {
			taken, released := n.Made("Take"), n.Made("Release")
			if len(taken) != 1 || len(released) == 0 || released[0].Token != taken[0].Token || released[0].D != 0 {
				t.Errorf("node %d: taken %+v, released %+v", i+1, taken, released)
			}
		}
		if n := holders(nodes); n != 1 {
			t.Errorf("%d nodes are locked, want the one that another has", n)
		}
		time.Sleep(time.Minute) // let the sweeps end
	})
}

// A node takes the lock long after it was told to. The release that follows does
// not overtake that; else the lock would be left to nobody. The same for Unlock,
// where the other nodes were enough.
func TestRedlockReleaseFollowsTake(t *testing.T) {
	for name, others := range map[string]string{"a try that fails": "another", "Unlock": ""} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				nodes := newNodes(3)
				r := redlockOn(nodes, Options{Lease: time.Hour, Wait: s, Timeout: s / 10})
				mustUnlock(t, lockOn(t, r))
				synctest.Wait()
				for _, n := range nodes[:2] {
					n.Put("k", others, time.Hour)
				}
				nodes[2].takes.Store(int64(9 * s / 10))
				if l, err := r.Lock(t.Context(), "k"); l != nil {
					mustUnlock(t, l)
				} else if !errors.Is(err, ErrTimeout) {
					t.Error(err)
				}
				after(time.Minute, func() {
					if nodes[2].Holder("k") != "" {
						t.Error("the lock was left to nobody")
					}
				})
				after(2*time.Hour, func() {
					last := ""
					for _, c := range nodes[2].Calls() {
						if c.Method == "Take" && last == "Take" {
							t.Errorf("a try came before the end of the one before it: %+v", nodes[2].Calls())
						}
						last = c.Method
					}
				})
			})
		})
	}
}

// Where an answer was lost, or the answer to the release, the lock is looked for
// until nothing can be left of it.
func TestRedlockSweeps(t *testing.T) {
	for name, takeErr := range map[string]error{"the take's answer is lost": errNoReply, "the release's is lost": nil} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				nodes := newNodes(3)
				back := time.Now().Add(2 * s)
				nodes[0].take = func(_ context.Context, _ int, do func() (bool, error)) (bool, error) {
					taken, _ := do()
					return taken, takeErr
				}
				nodes[0].release = func(_ context.Context, _ int, do func() error) error {
					if time.Now().Before(back) {
						return errNoReply
					}
					return do()
				}
				nodes[1].Put("k", "another", time.Hour)
				nodes[2].Put("k", "another", time.Hour)
				r := redlockOn(nodes, Options{Lease: time.Minute, Wait: NoWait})
				if _, err := r.Lock(t.Context(), "k"); !errors.Is(err, ErrTimeout) {
					t.Error(err)
				}
				after(5*s, func() {
					if nodes[0].Holder("k") != "" {
						t.Error("the lock was left to nobody")
					}
				})
				after(10*time.Minute, func() {
					if n := len(nodes[0].Made("Release")); n > 30 {
						t.Errorf("%d releases", n)
					}
				})
			})
		})
	}
}

// Half of the nodes or more refuse: that is known at once. So is that there is
// nothing to sweep.
func TestRedlockTooFewNodes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(5)
		leave(nodes[0], nodes[2], nodes[4])
		r := redlockOn(nodes, Options{})
		begin := time.Now()
		_, err := r.Lock(t.Context(), "k")
		wantTook(t, "Lock", begin, 0)
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
		for _, part := range []string{"for k: 3 of 5 nodes failed: ", "node 1: ", "node 3: ", "node 5: "} {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("the message %q does not tell %q", err, part)
			}
		}
		after(time.Minute, func() {
			if n := holders(nodes); n != 0 || len(nodes[1].Made("Release")) != 1 {
				t.Errorf("%d nodes are locked; releases: %+v", n, nodes[1].Made("Release"))
			}
		})
		wantIdle(t, &r.lock.group)
	})
}

// Half of the nodes or more say nothing: that is known after a time-out and the
// try to undo it. Those in line are told, too, instead of finding out in turn.
func TestRedlockSilence(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		nodes[0].slow(time.Hour)
		nodes[2].slow(time.Hour)
		r := redlockOn(nodes, Options{Wait: time.Minute})
		begin := time.Now()
		for range 10 {
			go func() {
				_, err := r.Lock(t.Context(), "k")
				if took := time.Since(begin); !errors.Is(err, ErrUnavailable) || took > s+s/4 {
					t.Errorf("after %v: %v", took, err)
				}
			}()
		}
		time.Sleep(s + s/4)
		synctest.Wait()
		wantIdle(t, &r.lock.group)
		time.Sleep(3 * time.Hour)
	})
}

// The caller goes while the nodes are being asked. Nothing is left of that, not
// even where the answer comes later.
func TestRedlockCallerIsGone(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(context.Context) (context.Context, context.CancelFunc)
		want error
		took time.Duration
	}{
		"cancelled": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(s/10, cancel)
			return ctx, cancel
		}, context.Canceled, s / 2},
		"out of time": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, s/10)
		}, context.DeadlineExceeded, s / 10},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				nodes := newNodes(3)
				for _, n := range nodes {
					n.takes.Store(int64(s / 2))
				}
				r := redlockOn(nodes, Options{Lease: time.Hour})
				ctx, cancel := tt.end(t.Context())
				defer cancel()
				begin := time.Now()
				if _, err := r.Lock(ctx, "k"); !errors.Is(err, tt.want) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(begin); took > tt.took+s/4 {
					t.Errorf("it took %v", took)
				}
				after(s, func() {
					if n := holders(nodes); n != 0 {
						t.Errorf("%d nodes are still locked", n)
					}
				})
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

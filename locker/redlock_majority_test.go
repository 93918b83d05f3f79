package locker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A fate is the state of a node when it is asked.
type fate string

const (
	works  fate = "works"
	others fate = "is another's" // another has the lock there, even if the holder had it before
	forgot fate = "forgot"       // the node came back empty
	away   fate = "is away"      // the node refuses every command
	dumb   fate = "is dumb"      // the node takes the lock without a reply, and then goes deaf
	deaf   fate = "goes deaf"    // the node does a take; for a second it ignores everything else
)

func (f fate) befall(n *fake) {
	switch f {
	case others:
		n.Put("k", "another", time.Hour)
	case forgot:
		forget(n)
	case away:
		n.away.Store(true)
	case deaf, dumb:
		back := time.Now().Add(s)
		n.instead = func(_ context.Context, method string, _ int, do func() error) error {
			if time.Now().After(back) {
				return do()
			}
			if method != "Take" {
				return errNoReply
			}
			if err := do(); f == deaf {
				return err
			}
			return errNoReply
		}
	}
}

// everyFate calls f with all combinations of fates of n nodes. It does not matter which node has which fate, but
// which node replies first: all orders for three nodes, and some for five.
func everyFate(n int, of []fate, f func([]fate)) {
	var choose func(chosen []fate)
	choose = func(chosen []fate) {
		if len(chosen) == n {
			f(chosen)
			return
		}
		for i, next := range of {
			if n <= 3 || len(chosen) == 0 || i >= slices.Index(of, chosen[len(chosen)-1]) {
				choose(append(slices.Clone(chosen), next))
			}
		}
	}
	choose(nil)
}

func count(in []fate, of ...fate) (n int) {
	for _, f := range in {
		if slices.Contains(of, f) {
			n++
		}
	}
	return n
}

// doomed returns nodes that reply one after the other.
func doomed(n int) []*fake {
	nodes := newNodes(n)
	for i, n := range nodes {
		n.slow(time.Duration(i) * time.Millisecond)
	}
	return nodes
}

// Only a majority acquires the lock. If a majority does not reply, that is an error which names those nodes;
// otherwise Lock can try again. A failed try is undone on every node, whatever its reply: even a no or a refusal
// may not come from the node itself, and a node whose reply was lost may have taken the lock.
func TestRedlockIsWonByAMajority(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(n), bubble(func(t *testing.T) {
			everyFate(n, []fate{works, others, away, dumb, deaf}, func(fates []fate) {
				nodes := doomed(n)
				for i, f := range fates {
					f.befall(nodes[i])
				}
				l, err := redlockOn(nodes, Options{Lease: time.Hour, Wait: NoWait}).Lock(t.Context(), "k")
				failed, want := count(fates, away, dumb), error(nil)
				switch {
				case 2*count(fates, works, deaf) > n:
				case 2*failed > n:
					want = ErrUnavailable
				default:
					want = ErrTimeout
				}
				if !errors.Is(err, want) || want == nil && err != nil {
					t.Errorf("%q: %v, want %v", fates, err, want)
				}
				if want == ErrUnavailable && !strings.Contains(fmt.Sprint(err), fmt.Sprintf("for k: %d of %d nodes failed: ", failed, n)) {
					t.Errorf("%q: %v, want the number of failed nodes", fates, err)
				}
				for i, f := range fates {
					named := strings.Contains(fmt.Sprint(err), fmt.Sprintf("node %d: ", i+1))
					if named != (want == ErrUnavailable && (f == away || f == dumb)) {
						t.Errorf("%q: %v: node %d is named: %v", fates, err, i+1, named)
					}
				}
				if l != nil {
					redistest.Elapse(2 * s)
					l.Unlock(t.Context())
				}
				redistest.Elapse(time.Minute)
				wantHolders(t, nodes, count(fates, others))
				for i, f := range nodes {
					taken, released := f.Made("Take"), f.Made("Release")
					if fates[i] != away && (len(taken) != 1 || len(released) == 0 || released[0].Token != taken[0].Token || released[0].D != 0) {
						t.Errorf("%q: node %d: taken %+v, released %+v", fates, i+1, taken, released)
					}
				}
				if t.Failed() {
					t.FailNow()
				}
			})
		}))
	}
}

// A holder extends or releases its lease. A majority of the nodes decides whether it has the lock, may have it,
// or has lost it to another or to nobody, in whatever order the nodes reply.
func TestRedlockIsLostByAMajority(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		for step, do := range map[string]func(context.Context, *Lease) error{
			"Extend": func(ctx context.Context, l *Lease) error { return l.Extend(ctx, 20*s) },
			"Unlock": func(ctx context.Context, l *Lease) error { return l.Unlock(ctx) },
		} {
			t.Run(fmt.Sprint(step, n), bubble(func(t *testing.T) {
				everyFate(n, []fate{works, others, forgot, away, deaf}, func(fates []fate) {
					nodes := doomed(n)
					l := mustLock(t, redlockOn(nodes, Options{}))
					redistest.Elapse(s)
					for i, f := range fates {
						f.befall(nodes[i])
					}
					have, unknown, want := count(fates, works), count(fates, away, deaf), error(nil)
					switch {
					case 2*have > n:
					case 2*(have+unknown) > n:
						want = ErrUnavailable
					case 2*(count(fates, others)+unknown) > n:
						want = ErrLost
					default:
						want = ErrExpired
					}
					if err := do(t.Context(), l); !errors.Is(err, want) || want == nil && err != nil {
						t.Errorf("%q: %v, want %v", fates, err, want)
					}
					// An extension that only some nodes have done does not count.
					if step == "Extend" && want == ErrUnavailable && l.Validity() > 9*s {
						t.Errorf("%q: the holder relies on %v", fates, l.Validity())
					}
					if over := want == ErrLost || want == ErrExpired; step == "Extend" && isLost(l) != over {
						t.Errorf("%q: lost is %v", fates, isLost(l))
					}
					l.Unlock(t.Context())
					redistest.Elapse(time.Minute)
				})
			}))
		}
	}
}

// An error names a holder, and a caller waits for its lease, only if that holder may have a majority, counted
// over the nodes that replied and the nodes that did not.
func TestRedlockHolderMayHaveAMajority(t *testing.T) {
	for name, tt := range map[string]struct {
		nodes []string // who has the lock there; "-": the node is away
		named bool
	}{
		"everywhere":             {[]string{"a", "a", "a"}, true},
		"on a majority":          {[]string{"b", "a", "a"}, true},
		"one may have the rest":  {[]string{"a", "-", ""}, true},
		"votes are split":        {[]string{"a", "b", ""}, false},
		"split three ways":       {[]string{"a", "b", "c"}, false},
		"two of five":            {[]string{"a", "a", "b", "", ""}, false},
		"two of five, one hides": {[]string{"b", "a", "a", "", "-"}, true},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			nodes := newNodes(len(tt.nodes))
			for i, who := range tt.nodes {
				switch who {
				case "":
				case "-":
					nodes[i].away.Store(true)
				default: // the longest lease of a holder counts
					nodes[i].Put("k", fmt.Sprintf("%d.1:%s", i+1, token(" "+who)(0)), time.Hour+time.Duration(i))
				}
			}
			begin := time.Now()
			_, err := redlockOn(nodes, Options{Policy: LeaseEnd}).Lock(t.Context(), "k")
			held, named := errors.AsType[*HeldError](err)
			if !errors.Is(err, ErrTimeout) || named != tt.named || named && held.Owner.Label != "a" {
				t.Errorf("error %v", err)
			}
			if waited := time.Since(begin) > 0; waited == tt.named {
				t.Errorf("it waited %v", time.Since(begin))
			}
		}))
	}
}

// With LeaseEnd, a waiter sleeps until the longest lease of the holder ends, and tries then.
func TestRedlockLeaseEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := doomed(3)
		for i, n := range nodes {
			n.Put("k", "another", time.Duration(min(5, 2+3*i))*s)
		}
		begin := time.Now()
		l := mustLock(t, redlockOn(nodes, Options{Policy: LeaseEnd}))
		if late := time.Since(begin) - 5*s; late < 0 || late > s/5 {
			t.Errorf("the lock was taken %v after it was free", late)
		}
		if n := len(nodes[0].Made("Take")); n != 2 {
			t.Errorf("%d tries", n)
		}
		mustUnlock(t, l)
	})
}

package lease

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// The lock goes from process to process in the order in which they came. Each process is notified at once, and
// does not poll.
func TestTheLockGoesByTheQueue(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		l := newProcess(t, server).mustLock(t, slow)
		var peers []*peer
		var waiting []<-chan result
		for range 3 {
			p := newProcess(t, server)
			peers = append(peers, p)
			waiting = append(waiting, p.joins(t, t.Context(), server, slow))
		}
		begin := time.Now()
		mustUnlock(t, l)
		for i, got := range waiting {
			mustWin(t, got)
			if !server.IsReal() { // a first try, one that joins the queue, and one that takes the lock
				peers[i].spin.wantCalls(t, "Take", 3)
				wantTook(t, begin, 0)
			}
		}
		wantRest(t, server, peers...)
	})
}

// Nobody extends the lease of a holder that was killed. So the lock blocks others until the lease ends, and no
// longer. No message is sent then, for which the subscription is not blamed.
func TestTheHolderIsKilled(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p := newProcess(t, server)
		const lease = s / 3
		begin := time.Now()
		server.Do(t, "SET", "k", NewToken(BondOf("k"), "the dead", begin), "PX", lease.Milliseconds())
		mustWin(t, wait(t.Context(), p.group, p.spin, patient))
		if took := time.Since(begin); took < lease-time.Millisecond || took > lease+20*time.Millisecond && !server.IsReal() {
			t.Errorf("the lock was taken after %v", took)
		}
		if !server.IsReal() {
			p.wire.want(t, 1, 1)
		}
		wantRest(t, server, p)
	})
}

// A program that does not know the queue deletes the lock. The processes in the queue find out by themselves.
// That program gets the lock when the queue is empty.
func TestTheQueueBesideOthers(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		take := func() bool {
			return server.Do(t, "SET", "k", NewToken(BondOf("k"), "", time.Now()), "NX", "PX", 60_000) != nil
		}
		take()
		p := newProcess(t, server)
		got := p.joins(t, t.Context(), server, slow)
		begin := time.Now()
		server.Do(t, "DEL", "k")
		if mustWin(t, got); time.Since(begin) > fallback && !server.IsReal() {
			t.Errorf("the lock was taken after %v", time.Since(begin))
		}
		eventually(t, "the lock is free", take)
	})
}

// If there can be no queue, the process polls, as without one.
func TestThereIsNoQueue(t *testing.T) {
	inMemory(t, func(t *testing.T, server *redistest.Server) {
		server.Do(t, "LPUSH", queueKey("k"), "something else")
		holder, p := newProcess(t, server), newProcess(t, server)
		l := holder.mustLock(t, slow)
		got := wait(t.Context(), p.group, p.spin, Options{})
		redistest.Elapse(s)
		if n := len(p.spin.Made("Take")); n < 50 || n > 150 {
			t.Errorf("%d tries in a second", n)
		}
		p.wire.want(t, 1, 1)
		mustUnlock(t, l)
		mustWin(t, got)
		server.Do(t, "DEL", queueKey("k"))
	})
}

// A caller that tries once, or sleeps until the lease ends, does not join the queue.
func TestWhoDoesNotPollDoesNotQueue(t *testing.T) {
	withTwo(t, func(t *testing.T, server *redistest.Server, holder, p *peer) {
		l := holder.mustLock(t, slow)
		for _, o := range []Options{{Wait: NoWait}, {Policy: LeaseEnd, Wait: s}} {
			if _, err := p.lock(t, o); !errors.Is(err, ErrTimeout) {
				t.Error(err)
			}
		}
		p.wire.want(t, 0, 0)
		mustUnlock(t, l)
	})
}

// A place belongs to its process: a caller that gives up leaves the place to the next caller, ahead of other
// processes.
func TestAProcessKeepsItsTurn(t *testing.T) {
	inMemory(t, func(t *testing.T, server *redistest.Server) {
		holder, p, other := newProcess(t, server), newProcess(t, server), newProcess(t, server)
		l := holder.mustLock(t, slow)
		ctx, cancel := context.WithCancel(t.Context())
		p.joins(t, ctx, server, slow)
		second := wait(t.Context(), p.group, p.spin, slow)
		third := other.joins(t, t.Context(), server, slow)
		cancel()
		redistest.Elapse(s / 10)
		mustUnlock(t, l)
		r := <-second
		if synctest.Wait(); len(third) > 0 {
			t.Error("another process was served first")
		}
		mustUnlock(t, r.lease)
		mustWin(t, third)
	})
}

// While all processes wait, each is served about equally often, and is notified by one subscription.
func TestTheQueueIsFair(t *testing.T) {
	inMemory(t, func(t *testing.T, server *redistest.Server) {
		const callers, times = 3, 70
		peers := newProcesses(t, server, 4)
		served, total := make([]int, len(peers)), 0 // guarded by the lock
		takeTurns(t, peers, callers, times, func(process int) {
			pause(time.Millisecond)
			if total++; total <= 2*callers*times { // after that, some no longer wait
				served[process]++
			}
		})
		if least, most := slices.Min(served), slices.Max(served); float64(most) > 1.3*float64(least) {
			t.Errorf("served %v", served)
		}
		for _, p := range peers {
			p.wire.want(t, 1, 1)
		}
	})
}

// The network has made a copy of the take that joins the queue, and it arrives when the caller has gone. The
// place of that copy gets its turn once. If its process is notified, or no longer listens, nobody waits for that
// turn. Otherwise the wait is at most a quarter of a second.
func TestAPlaceOfNobody(t *testing.T) {
	for name, tt := range map[string]struct {
		denied, listens bool
		waited          time.Duration
	}{
		"its process is notified":        {listens: true},
		"it is not notified":             {denied: true, listens: true, waited: s / 4},
		"its process listens to nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			withTwo(t, func(t *testing.T, server *redistest.Server, holder, p *peer) {
				p.wire.set(func() { p.wire.denied = tt.denied })
				l := holder.mustLock(t, slow)
				other, err := holder.group.Lock(t.Context(), "other", holder.spin, slow)
				wantError(t, err, nil)
				ctx, cancel := context.WithCancel(t.Context())
				if tt.listens { // for another key
					go p.group.Lock(ctx, "other", &spin{Spin: p.spin.Spin}, slow)
					redistest.Elapse(s)
				}
				var last func() error
				p.spin.take = func(c call) error { last = c.do; return c.do() }
				if _, err = p.lock(t, Options{Wait: s}); !errors.Is(err, ErrTimeout) {
					t.Fatal(err)
				}
				redistest.Elapse(s)
				wantNoQueue(t, server)
				wantError(t, last(), nil)
				if places := queued(t, server); len(places) != 1 {
					t.Fatalf("%q are in the queue, want one", places)
				}
				for _, most := range []time.Duration{tt.waited, 0} {
					begin := time.Now()
					mustUnlock(t, l)
					l = holder.mustLock(t, Options{})
					if took := time.Since(begin); took > most+20*time.Millisecond {
						t.Errorf("nobody had the lock for %v", took)
					}
				}
				mustUnlock(t, l)
				cancel()
				mustUnlock(t, other)
			})
		})
	}
}

// Crowds in several processes count with a variable that only the lock guards. All get their turn, whatever
// happens to the messages between them.
func TestACrowdInSeveralProcesses(t *testing.T) {
	for name, disturb := range map[string]func(t *testing.T, server *redistest.Server){
		"undisturbed":       func(*testing.T, *redistest.Server) {},
		"connections break": func(t *testing.T, server *redistest.Server) { server.Do(t, "CLIENT", "KILL", "TYPE", "pubsub") },
		"all vanishes but the lock": func(t *testing.T, server *redistest.Server) {
			server.Do(t, "SCRIPT", "FLUSH")
			server.Do(t, "DEL", queueKey("k"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Real(t)
			peers := newProcesses(t, server, 3)
			n := 0
			takeTurns(t, peers, 4, 25, func(int) {
				read := n
				runtime.Gosched() // lets others run, which only the lock keeps out
				n = read + 1
				if n%20 == 0 {
					disturb(t, server)
				}
			})
			if n != 3*4*25 {
				t.Errorf("counted %d of %d", n, 3*4*25)
			}
			wantRest(t, server, peers...)
		})
	}
}

// Whichever rights a Redis user lacks, the lock excludes, all get their turn, and nothing is left.
func TestTheQueueWithFewRights(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	user := 0
	for name, rules := range map[string][]any{
		"no pubsub":             {"~*", "&latchkey:wake:*", "+publish", "+subscribe"},
		"other channels":        {"~*", "&other:*", "+publish", "+subscribe"},
		"no subscribe":          {"~*", "&*", "+publish"},
		"no publish":            {"~*", "&*", "+subscribe", "+pubsub|numsub"},
		"no key of the queue":   {"~k", "&*", "+publish", "+subscribe"},
		"only the least rights": {"~k", "resetchannels"},
	} {
		user := addUser(t, server, &user, rules...)
		var peers []*peer
		for range 3 {
			peers = append(peers, newProcessOver(t, poolAs(t, server, user), patient.Timeout))
		}
		n := 0
		takeTurns(t, peers, 2, 4, func(int) {
			n++
			runtime.Gosched()
		})
		if keys := server.Keys(t); n != 24 || len(keys) != 0 {
			t.Errorf("%s: counted %d of 24; left behind: %q", name, n, keys)
		}
	}
}

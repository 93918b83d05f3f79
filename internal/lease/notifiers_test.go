package lease

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// withCluster runs f in fake time, with the Notifiers of one process of a cluster.
func withCluster(t *testing.T, f func(t *testing.T, n *Notifiers, line *wire, publish func(p *place))) {
	inMemory(t, func(t *testing.T, server *redistest.Server) {
		line := &wire{Client: transport.NewRedigo(server.Pool(t, 1), patient.Timeout), cluster: true}
		n := NewNotifiers(line, func(_ context.Context, key, place string) error {
			t.Errorf("%s of %s is given up", place, key)
			return nil
		})
		f(t, n, line, func(p *place) {
			name := p.choose()
			server.Do(t, "PUBLISH", name[:strings.LastIndex(name, "/")], name+" the key")
			synctest.Wait()
		})
		redistest.Elapse(max(idleTime, retryTime))
		line.want(t, 0, line.asked)
		if len(n.byKey) != 0 {
			t.Errorf("left: %v", n.byKey)
		}
	})
}

// On a cluster each key that is waited for has a channel of its own, in the key's slot. Soon after the last place
// has gone, nothing is left of it.
func TestNotifiersOfACluster(t *testing.T) {
	withCluster(t, func(t *testing.T, n *Notifiers, line *wire, publish func(*place)) {
		a, b, c := n.placeFor("latchkey:{a}.lock"), n.placeFor("latchkey:{b}.lock"), n.placeFor("latchkey:{b}.lock")
		line.want(t, 2, 2)
		for p, tag := range map[*place]string{a: "{a}", b: "{b}", c: "{b}"} {
			if name := p.choose(); !strings.HasPrefix(name, channelPrefix) || !strings.Contains(name, tag+"/") {
				t.Errorf("the name of a place: %s", name)
			}
		}
		if !n.listening("latchkey:{a}.lock") || n.listening("latchkey:{c}.lock") {
			t.Error("the wrong channels are listened to")
		}
		publish(b)
		if len(a.notified) != 0 || len(b.notified) != 1 || len(c.notified) != 0 {
			t.Error("the message for b woke the wrong places")
		}
		a.forget()
		b.forget()
		redistest.Elapse(idleTime)
		line.want(t, 1, 2)
		c.forget()
	})
}

// Just after the last place of a key has left, a new place of that key listens to the same channel. It has
// another name, since the queue may still contain the old one.
func TestNotifiersOfOneKeyFollowEachOther(t *testing.T) {
	withCluster(t, func(t *testing.T, n *Notifiers, line *wire, _ func(*place)) {
		names := make(map[string]bool)
		for _, pause := range []time.Duration{0, idleTime - 1, idleTime, idleTime + 1} {
			for range 10 {
				p := n.placeFor("k")
				synctest.Wait()
				if name := p.choose(); names[name] || strings.HasPrefix(name, "-") {
					t.Errorf("the name of a place: %q", name)
				} else {
					names[name] = true
				}
				p.forget()
				redistest.Elapse(pause)
			}
		}
	})
}

// Without SSUBSCRIBE, or the right to it, places poll. It is not tried again for each place.
func TestNotifiersWithoutShardedChannels(t *testing.T) {
	withCluster(t, func(t *testing.T, n *Notifiers, line *wire, _ func(*place)) {
		line.denied = true
		for range 10 {
			p := n.placeFor("k")
			synctest.Wait()
			if name := p.choose(); !strings.HasPrefix(name, "-") || p.isNotified() {
				t.Errorf("the name of a place: %s", name)
			}
			p.forget()
			redistest.Elapse(idleTime)
		}
		line.want(t, 0, 1)
	})
}

// All waiting callers of a process share one subscription, whatever their keys, and a message wakes only the
// caller that it names. The subscription ends soon after the last caller has gone, even if it was still being
// made. It also serves a caller that comes before its end.
func TestASubscriptionIsShared(t *testing.T) {
	withTwo(t, func(t *testing.T, server *redistest.Server, holder, p *peer) {
		l := holder.mustLock(t, slow)
		other, err := holder.group.Lock(t.Context(), "other", holder.spin, slow)
		if err != nil {
			t.Fatal(err)
		}
		p.wire.want(t, 0, 0)
		ctx, cancel := context.WithCancel(t.Context())
		got := p.joins(t, t.Context(), server, slow)
		go p.group.Lock(ctx, "other", p.spin, slow)
		synctest.Wait()
		p.wire.want(t, 1, 1)
		asked := len(p.spin.Made("Take"))
		mustUnlock(t, l)
		mustWin(t, got)
		p.spin.wantCalls(t, "Take", asked+1)
		redistest.Elapse(s)
		p.wire.want(t, 1, 1)

		cancel() // the last caller
		redistest.Elapse(idleTime / 2)
		l = holder.mustLock(t, slow)
		got = p.joins(t, t.Context(), server, slow)
		mustUnlock(t, l)
		mustWin(t, got)
		p.wire.want(t, 1, 1)
		redistest.Elapse(idleTime)
		p.wire.want(t, 0, 1)

		p.wire.set(func() { p.wire.takes = s })
		ctx, cancel = context.WithCancel(t.Context())
		go p.group.Lock(ctx, "other", p.spin, slow)
		synctest.Wait()
		cancel()
		redistest.Elapse(s + idleTime)
		p.wire.want(t, 0, 2)
		mustUnlock(t, other)
	})
}

// A caller comes just when the last subscription is due to end. Whichever is first, the caller is notified when
// its turn has come.
func TestACallerComesAsTheSubscriptionEnds(t *testing.T) {
	t.Parallel()
	for range 30 { // chance decides which comes first
		redistest.InFakeTime(t, func(t *testing.T, server *redistest.Server) {
			holder, p := newProcess(t, server), newProcess(t, server)
			for range 2 {
				l := holder.mustLock(t, slow)
				got := wait(t.Context(), p.group, p.spin, slow)
				redistest.Elapse(time.Millisecond)
				begin := time.Now()
				mustUnlock(t, l)
				mustWin(t, got)
				wantTook(t, begin, 0)
				redistest.Elapse(idleTime)
			}
		})
	}
}

// A process cannot be notified of its turn: it has no subscription, or loses it, or messages get lost. It still
// gets its turn soon, and leaves nothing behind. A minute later it is notified again.
func TestWhoIsNotToldAsks(t *testing.T) {
	type situation struct {
		useful bool // the subscription has received a message before
		before func(l *wire)
		after  func(p *peer, server *redistest.Server)
		deaf   bool          // its place says that it cannot be notified
		most   time.Duration // for which nobody has the lock
		asked  int           // how often a subscription was tried
	}
	each(t, map[string]situation{
		"denied":         {before: func(l *wire) { l.denied = true }, deaf: true, most: asking, asked: 1},
		"takes too long": {before: func(l *wire) { l.takes = 50 * s }, deaf: true, most: asking, asked: 1},
		"breaks before it is of any use": {
			after: func(p *peer, _ *redistest.Server) { p.wire.cut(false) }, deaf: true, most: asking, asked: 1},
		"breaks later": {
			useful: true, after: func(p *peer, _ *redistest.Server) { p.wire.cut(false) }, asked: 2},
		"breaks later, and then it is denied": {
			useful: true, after: func(p *peer, _ *redistest.Server) {
				p.wire.set(func() { p.wire.denied = true })
				p.wire.cut(false)
			}, deaf: true, most: asking, asked: 2},
		"the slot moves":     {after: func(p *peer, _ *redistest.Server) { p.wire.cut(true) }, asked: 2},
		"messages get lost":  {before: func(l *wire) { l.lossy = true }, most: fallback, asked: 1},
		"it was passed over": {after: func(p *peer, s *redistest.Server) { s.Do(t, "DEL", queueKey("k")) }, deaf: true, most: asking, asked: 1},
	}, func(t *testing.T, tt situation) {
		server := redistest.Memory(t)
		holder, p := newProcess(t, server), newProcess(t, server)
		if tt.useful {
			l := holder.mustLock(t, slow)
			got := p.joins(t, t.Context(), server, slow)
			mustUnlock(t, l)
			mustWin(t, got)
		}
		if tt.before != nil {
			p.wire.set(func() { tt.before(p.wire) })
		}
		l := holder.mustLock(t, slow)
		got := wait(t.Context(), p.group, p.spin, Options{Wait: time.Hour})
		redistest.Elapse(20 * time.Millisecond)
		if tt.after != nil {
			tt.after(p, server)
		}
		redistest.Elapse(3 * s)
		if places := queued(t, server); len(places) != 1 || strings.HasPrefix(places[0], "-") != tt.deaf {
			t.Errorf("the queue holds %q", places)
		}
		begin := time.Now()
		mustUnlock(t, l)
		mustWin(t, got)
		if waited := time.Since(begin); waited > tt.most {
			t.Errorf("nobody had the lock for %v", waited)
		}
		p.wire.set(func() {
			if p.wire.asked != tt.asked {
				t.Errorf("asked for a subscription %d times, want %d", p.wire.asked, tt.asked)
			}
			p.wire.denied, p.wire.lossy, p.wire.takes = false, false, 0
		})
		redistest.Elapse(time.Minute)
		l = holder.mustLock(t, slow)
		got = p.joins(t, t.Context(), server, slow)
		begin = time.Now()
		mustUnlock(t, l)
		mustWin(t, got)
		wantTook(t, begin, 0)
	})
}

// The subscription works, but messages get lost. The first lost message costs a wait of fallback. From then on
// the process polls.
func TestMessagesThatGetLostAreNotReliedOn(t *testing.T) {
	withTwo(t, func(t *testing.T, server *redistest.Server, holder, p *peer) {
		p.wire.set(func() { p.wire.lossy = true })
		for _, most := range []time.Duration{fallback, asking, asking} {
			l := holder.mustLock(t, slow)
			got := p.joins(t, t.Context(), server, Options{})
			begin := time.Now()
			mustUnlock(t, l)
			if mustWin(t, got); time.Since(begin) > most {
				t.Errorf("it took %v, want at most %v", time.Since(begin), most)
			}
		}
	})
}

// The connection breaks while a place is in the queue, and a new one takes long. Meanwhile the lock's lease ends.
// The process that takes the lock must not leave a place behind: the place would get the lock later, when no
// caller is there to take it.
func TestTheLockIsWonWhileTheSubscriptionIsBroken(t *testing.T) {
	withTwo(t, func(t *testing.T, server *redistest.Server, holder, p *peer) {
		l := holder.mustLock(t, slow)
		got := p.joins(t, t.Context(), server, slow)
		mustUnlock(t, l)
		mustWin(t, got) // the subscription has worked, so another is tried
		server.Do(t, "SET", "k", NewToken(BondOf("k"), "the dead", time.Now()), "PX", 1000)
		got = p.joins(t, t.Context(), server, Options{})
		p.wire.set(func() { p.wire.takes = 90 * s })
		p.wire.cut(false)
		r := <-got
		if r.err != nil {
			t.Fatal(r.err)
		}
		wantNoQueue(t, server)
		mustUnlock(t, r.lease)
	})
}

package lease

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// One timer serves many leases, and each is extended when a third of it is over: those that
// follow each other, those that are over meanwhile, and one that is due before all others.
func TestEachLeaseIsExtendedInTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		begin := time.Now()
		leases := map[string]*Lease{}
		take := func(key string, o Options) {
			l, err := g.Lock(t.Context(), key, &f, o)
			if err != nil {
				t.Fatal(err)
			}
			leases[key] = l
			time.Sleep(s / 2)
		}
		long := Options{Lease: 18 * s, MaxHold: time.Hour}
		take("over", long)
		take("first", long)
		take("over, too", long)
		take("second", long)
		take("short", Options{Lease: 3 * s, MaxHold: time.Hour})
		take("over as well", long)
		for _, key := range []string{"over, too", "over", "over as well"} {
			mustUnlock(t, leases[key])
		}
		var got []string
		after(7*s+s/4-time.Since(begin), func() {
			for _, c := range f.Made("Extend") {
				got = append(got, fmt.Sprint(c.Key, " ", c.At.Sub(begin)))
			}
		})
		want := []string{"short 3s", "short 4s", "short 5s", "short 6s", "first 6.5s", "short 7s"}
		if !slices.Equal(got, want) {
			t.Errorf("extended: %q, want %q", got, want)
		}
		for _, key := range []string{"first", "second", "short"} {
			mustUnlock(t, leases[key])
		}
		wantIdle(t, &g)
	})
}

// A caller waits for as long as it wants to, however long those wait that came before it.
func TestEachWaitEndsInTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{Lease: time.Hour})
		ended := make(chan time.Duration, 5)
		begin := time.Now()
		for _, wait := range []time.Duration{10 * s, 20 * s, 5 * s, 20 * s, 30 * s} {
			go func() {
				_, err := g.Lock(t.Context(), "k", &f, Options{Wait: wait})
				if ended <- time.Since(begin); !errors.Is(err, ErrTimeout) {
					t.Errorf("after %v: %v", time.Since(begin), err)
				}
			}()
			after(s, func() {})
		}
		for _, want := range []time.Duration{7 * s, 10 * s, 21 * s, 23 * s, 34 * s} {
			if got := <-ended; got != want {
				t.Errorf("one ended after %v, want %v", got, want)
			}
		}
		mustUnlock(t, l)
		wantIdle(t, &g)
	})
}

// The timer was set for one that is over, and fires for one that is due sooner.
func TestAnAlarmIsNotLateForAnotherThatIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		mustUnlock(t, lock(t, &g, &f, Options{Lease: time.Hour, MaxHold: 2 * time.Hour}))
		l := lock(t, &g, &f, Options{Lease: 3 * s})
		after(s+s/2, func() {
			if n := len(f.Made("Extend")); n != 1 {
				t.Errorf("%d extensions", n)
			}
		})
		mustUnlock(t, l)
	})
}

// An alarm that would be a little too early for the end of the list is a little late; one that
// would be far too early is not added.
func TestAlarmsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := alarms{ring: func() {}}
		now := time.Now()
		var added []time.Duration
		for _, ms := range []time.Duration{10, 20, 18, 17, 20, 30} {
			if l := new(Lease); a.add(l, now.Add(ms*time.Millisecond), 2*time.Millisecond) {
				added = append(added, l.alarm.due.Sub(now)/time.Millisecond)
			}
		}
		if want := []time.Duration{10, 20, 20, 20, 30}; !slices.Equal(added, want) {
			t.Errorf("due after %d ms, want %d", added, want)
		}
	})
}

// Whichever alarm of the list is cancelled, the others go off.
func TestAnAlarmIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 4
		now := time.Now()
		for gone := range 1 << n {
			a := alarms{ring: func() {}}
			leases := make([]Lease, n)
			var want []*Lease
			for i := range leases {
				a.add(&leases[i], now, 0)
			}
			for i := range leases {
				if gone&(1<<i) != 0 {
					leases[i].alarm.cancel()
				} else {
					want = append(want, &leases[i])
				}
			}
			var got []*Lease
			for l := a.ringing(now); l != nil; l = a.ringing(now) {
				got = append(got, l)
			}
			if !slices.Equal(got, want) || a.first != nil || a.last != nil || !a.at.IsZero() {
				t.Errorf("without %04b: %d went off, want %d", gone, len(got), len(want))
			}
		}
	})
}

// The wait of a caller may end just as it gets the lock, when what ends it can no longer be stopped.
// That leaves the lease alone.
func TestTheEndOfAWaitThatIsOverLeavesTheLeaseAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{Lease: 3 * time.Second})
		g.mu.Lock()
		g.endWait(l)
		g.mu.Unlock()
		time.Sleep(10 * time.Second)
		if len(f.Made("Extend")) == 0 {
			t.Errorf("the lease is never extended, and valid for %v", l.Validity())
		}
		_ = l.Unlock(t.Context())
	})
}

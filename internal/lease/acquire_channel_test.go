package lease

import (
	"strings"
	"testing"
	"time"
)

// Who holds no channel asks, and has its turn among those who do.
func TestAcquireWithoutChannel(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		site := newFakeSite(t)
		deaf, told := site.process(), site.process()
		deaf.notifiers.shared.subscribe = (&fakePubSub{denied: true}).Subscribe
		l := mustHave(t, site.process(), Options{})
		first := contend(t, t.Context(), deaf, Options{Backoff: slow.Backoff})
		second := contend(t, t.Context(), told, slow)
		time.Sleep(s)
		begin := time.Now()
		mustUnlock(t, l)
		if r := <-first; r.err != nil || time.Since(begin) > asking {
			t.Errorf("after %v: %v", time.Since(begin), r.err)
		} else {
			mustUnlock(t, r.lease)
		}
		mustWin(t, second)
		deaf.notifiers.shared.subscribe = site.pubsub.Subscribe // for what follows
		wantRest(t, site, deaf, told)
	})
}

// The connection breaks while a place is in the queue, and making another takes its
// time. Meanwhile the lock becomes free by itself. Whoever takes it must not leave a
// place behind, which would get the lock later, when nobody is there to take it.
func TestAcquireWonWhileChannelIsBroken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		site := newFakeSite(t)
		f := site.process()
		site.Put("k", "of the dead", s)
		got := contend(t, t.Context(), f, Options{})
		sub := f.notifiers.shared.subscription
		f.notifiers.shared.mu.Lock()
		sub.received = true // so that there is hope for another
		f.notifiers.shared.mu.Unlock()
		site.pubsub.set(func(e *fakePubSub) { e.takes = 90 * s })
		site.pubsub.cut()
		r := <-got
		if r.err != nil {
			t.Fatal(r.err)
		}
		if places := site.inQueue("k"); len(places) > 0 {
			t.Errorf("left in the queue: %q", places)
		}
		mustUnlock(t, r.lease)
		wantRest(t, site, f)
	})
}

// The connection breaks while a place is in the queue, and there is no other. The
// place would be passed over for ever, since nobody hears that its turn has come.
func TestAcquireLosesItsChannel(t *testing.T) {
	for name, heard := range map[string]bool{"for good": true, "at once": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				site := newFakeSite(t)
				f := site.process()
				l := mustHave(t, site.process(), Options{})
				got := contend(t, t.Context(), f, Options{})
				f.notifiers.shared.mu.Lock()
				f.notifiers.shared.subscription.received = heard
				f.notifiers.shared.mu.Unlock()
				site.pubsub.set(func(e *fakePubSub) { e.denied = true })
				site.pubsub.cut()
				time.Sleep(s)
				if places := site.inQueue("k"); len(places) != 1 || !strings.HasPrefix(places[0], "-") {
					t.Errorf("it waits as %q", places)
				}
				begin := time.Now()
				mustUnlock(t, l)
				mustWin(t, got)
				if waited := time.Since(begin); waited > asking {
					t.Errorf("it took %v", waited)
				}
				wantRest(t, site, f)
			})
		})
	}
}

// Messages count as heard, and get lost. The first costs one fall-back step, and from
// then on nobody relies on them.
func TestAcquireIsNotTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		site := newFakeSite(t)
		f := site.process()
		site.pubsub.set(func(e *fakePubSub) { e.lossy = true })
		for _, want := range []time.Duration{fallback, asking} {
			l := mustHave(t, site.process(), Options{})
			got := contend(t, t.Context(), f, Options{})
			time.Sleep(s / 10)
			begin := time.Now()
			mustUnlock(t, l)
			if mustWin(t, got); time.Since(begin) > want {
				t.Errorf("it took %v, want at most %v", time.Since(begin), want)
			}
		}
		wantRest(t, site, f)
	})
}

// A process slept, and its turn passed. That is seen as well.
func TestAcquireWasPassedOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		site := newFakeSite(t)
		f := site.process()
		l := mustHave(t, site.process(), Options{})
		got := contend(t, t.Context(), f, Options{})
		site.mu.Lock()
		site.leaveLocked("k", site.queues["k"][0])
		site.mu.Unlock()
		time.Sleep(s)
		if places := site.inQueue("k"); len(places) != 1 {
			t.Errorf("it is not in the queue any more: %q", places)
		}
		wantSubscriptions(t, &site.pubsub, 0, 1) // and nobody relies on the notifier for now
		mustUnlock(t, l)
		mustWin(t, got)
		wantRest(t, site, f)
	})
}

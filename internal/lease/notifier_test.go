package lease

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// wantSubscriptions says how many subscriptions there are, and how often one was asked for.
func wantSubscriptions(t *testing.T, e *fakePubSub, open, asked int) {
	t.Helper()
	synctest.Wait()
	if n := len(e.listeners()); n != open {
		t.Errorf("%d subscriptions, want %d", n, open)
	}
	if n := e.asked(); n != asked {
		t.Errorf("asked for a subscription %d times, want %d", n, asked)
	}
}

// wantQuiet says that a notifier has nothing left a moment after the last of its places.
func wantQuiet(t *testing.T, b *notifier, pubsub *fakePubSub) {
	t.Helper()
	time.Sleep(idleTime)
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.places) != 0 || b.subscription != nil || len(pubsub.listeners()) != 0 {
		t.Errorf("left are %d places, and the sub %v", len(b.places), b.subscription)
	}
}

// wasNotified tells whether a place was rung, and forgets it.
func wasNotified(p *place) bool {
	synctest.Wait()
	select {
	case <-p.notified:
		return true
	default:
		return false
	}
}

// All places share one subscription, which ends soon after the last of them. A bubble
// in which a goroutine is left over fails its test.
func TestNotifierListensWhileSomebodyWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var pubsub fakePubSub
		b := newNotifier("", pubsub.Subscribe, func() {})
		wantSubscriptions(t, &pubsub, 0, 0)
		a, c := b.place(), b.place()
		wantSubscriptions(t, &pubsub, 1, 1)
		a.leave()
		time.Sleep(time.Minute)
		wantSubscriptions(t, &pubsub, 1, 1)
		c.leave()
		time.Sleep(idleTime / 2)
		wantSubscriptions(t, &pubsub, 1, 1)
		d := b.place() // comes before it is over
		time.Sleep(time.Minute)
		wantSubscriptions(t, &pubsub, 1, 1)
		d.leave()
		time.Sleep(idleTime)
		wantSubscriptions(t, &pubsub, 0, 1)
		wantQuiet(t, b, &pubsub)
	})
}

// A place comes when the time of the last subscription is just over: whoever is first,
// the place is rung, or told.
func TestNotifierPlaceComesAtTheEnd(t *testing.T) {
	for range 50 { // it is a matter of chance which comes first
		synctest.Test(t, func(t *testing.T) {
			var pubsub fakePubSub
			b := newNotifier("", pubsub.Subscribe, func() {})
			b.place().leave()
			time.Sleep(idleTime)
			p := b.place() // the timer runs now, too
			p.choose()
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if name := p.choose(); pubsub.publish(name) != 1 || !wasNotified(p) || !p.isNotified() {
				t.Errorf("%s hears nothing; subscriptions: %d", p.name, pubsub.asked())
			}
			p.leave()
			wantQuiet(t, b, &pubsub)
		})
	}
}

// The last place leaves before Redis has answered.
func TestNotifierClosesWhileStarting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pubsub := fakePubSub{takes: s}
		newNotifier("", pubsub.Subscribe, func() {}).place().leave()
		time.Sleep(s)
		wantSubscriptions(t, &pubsub, 1, 1)
		time.Sleep(idleTime)
		wantSubscriptions(t, &pubsub, 0, 1)
	})
}

func TestNotifierRingsOnlyTheOneThatIsMeant(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var pubsub fakePubSub
		b := newNotifier("", pubsub.Subscribe, func() {})
		a, c := b.place(), b.place()
		synctest.Wait()
		for range 3 { // one too many does nothing
			pubsub.publish(c.choose())
		}
		if wasNotified(a) || !wasNotified(c) || wasNotified(c) {
			t.Error("not c alone was rung, once")
		}
		gone := c.choose()
		c.leave()
		pubsub.publish(gone)
		pubsub.publish(b.channel + "/none")
		if wasNotified(a) {
			t.Error("a was rung for others")
		}
		a.leave()
		wantQuiet(t, b, &pubsub)
	})
}

// A subscription that breaks makes everybody ask, since what it should have heard is
// not known. Then there is a new one.
func TestNotifierBreaks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var pubsub fakePubSub
		b := newNotifier("", pubsub.Subscribe, func() {})
		a, c := b.place(), b.place()
		synctest.Wait()
		pubsub.publish(a.choose())
		wasNotified(a)
		c.choose()

		pubsub.set(func(e *fakePubSub) { e.takes = s })
		pubsub.cut()
		if !wasNotified(a) || !wasNotified(c) {
			t.Error("not all were rung")
		}
		if a.isNotified() {
			t.Error("it relies on what is gone")
		}
		<-a.ready()
		if name := a.choose(); !a.isNotified() || strings.HasPrefix(name, "-") {
			t.Errorf("%s is not told again", name)
		}
		wantSubscriptions(t, &pubsub, 1, 2)
		a.leave()
		c.leave()
		wantQuiet(t, b, &pubsub)
	})
}

// Where a subscription cannot be had, places say so, and do not ask for it all the
// time. That goes for one that breaks before it was of any use, too, and for one that
// takes too long.
func TestNotifierIsDeaf(t *testing.T) {
	for name, steps := range map[string]struct {
		before func(e *fakePubSub)
		after  func(e *fakePubSub, p *place)
	}{
		"denied": {before: func(e *fakePubSub) { e.denied = true }},
		"breaks, and then it is denied": {after: func(e *fakePubSub, p *place) {
			e.publish(p.choose())
			synctest.Wait()
			e.set(func(e *fakePubSub) { e.denied = true })
			e.cut()
			synctest.Wait()
			p.isNotified() // asks for another
		}},
		"breaks before it was of any use": {after: func(e *fakePubSub, _ *place) { e.cut() }},
		"distrusted":                      {after: func(_ *fakePubSub, p *place) { p.notifier.replace() }},
		"takes too long": {
			before: func(e *fakePubSub) { e.takes = time.Minute },
			after:  func(*fakePubSub, *place) { time.Sleep(subscribeTime + 1) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var pubsub fakePubSub
				if steps.before != nil {
					steps.before(&pubsub)
				}
				p := newNotifier("", pubsub.Subscribe, func() {}).place()
				synctest.Wait()
				if steps.after != nil {
					steps.after(&pubsub, p)
				}
				synctest.Wait()
				asked := pubsub.asked()
				for range 100 {
					if name := p.choose(); p.isNotified() || !strings.HasPrefix(name, "-") {
						t.Fatalf("%s relies on being told", name)
					}
				}
				wantSubscriptions(t, &pubsub, len(pubsub.listeners()), asked)
				old := p.choose()
				pubsub.set(func(e *fakePubSub) { e.denied, e.takes = false, 0 })
				time.Sleep(time.Minute)
				next := p.notifier.place()
				synctest.Wait()
				if name := next.choose(); !next.isNotified() || strings.HasPrefix(name, "-") {
					t.Errorf("%s comes a minute later and is not told", name)
				}
				if name := p.choose(); name != old {
					t.Errorf("%s has become %s in the queue", old, name)
				}
				p.leave()
				next.leave()
				wantQuiet(t, p.notifier, &pubsub)
			})
		})
	}
}

// One that has heard something is replaced at once when it misses something.
func TestNotifierReplacesWhatItDistrusts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var pubsub fakePubSub
		b := newNotifier("", pubsub.Subscribe, func() {})
		p := b.place()
		synctest.Wait()
		before := pubsub.listeners()
		pubsub.publish(p.choose())
		wasNotified(p)
		b.replace()
		if !wasNotified(p) || p.isNotified() {
			t.Error("the place was not told to ask")
		}
		wantSubscriptions(t, &pubsub, 1, 2)
		if !p.isNotified() || slices.Equal(pubsub.listeners(), before) {
			t.Error("there is no new one")
		}
		b.replace()
		b.replace() // there is none now
		p.leave()
		wantQuiet(t, b, &pubsub)
	})
}

package lease

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// wantEars says how many subscriptions there are, and how often one was asked for.
func wantEars(t *testing.T, e *fakeEars, open, asked int) {
	t.Helper()
	synctest.Wait()
	if n := len(e.listeners()); n != open {
		t.Errorf("%d subscriptions, want %d", n, open)
	}
	if n := e.asked(); n != asked {
		t.Errorf("asked for a subscription %d times, want %d", n, asked)
	}
}

// wantQuiet says that a bell has nothing left a moment after the last of its places.
func wantQuiet(t *testing.T, b *Notifier) {
	t.Helper()
	time.Sleep(idleTime)
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.places) != 0 || b.subscription != nil || len(b.subscriber.(*fakeEars).listeners()) != 0 {
		t.Errorf("left are %d places, and the ear %v", len(b.places), b.subscription)
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
		var ears fakeEars
		b := NewNotifier(&ears)
		wantEars(t, &ears, 0, 0)
		a, c := b.place(), b.place()
		wantEars(t, &ears, 1, 1)
		a.leave()
		time.Sleep(time.Minute)
		wantEars(t, &ears, 1, 1)
		c.leave()
		time.Sleep(idleTime / 2)
		wantEars(t, &ears, 1, 1)
		d := b.place() // comes before it is over
		time.Sleep(time.Minute)
		wantEars(t, &ears, 1, 1)
		d.leave()
		time.Sleep(idleTime)
		wantEars(t, &ears, 0, 1)
		wantQuiet(t, b)
	})
}

// A place comes when the time of the last subscription is just over: whoever is first,
// the place is rung, or told.
func TestNotifierPlaceComesAtTheEnd(t *testing.T) {
	for range 50 { // it is a matter of chance which comes first
		synctest.Test(t, func(t *testing.T) {
			var ears fakeEars
			b := NewNotifier(&ears)
			b.place().leave()
			time.Sleep(idleTime)
			p := b.place() // the timer runs now, too
			p.choose()
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if name := p.choose(); ears.publish(name) != 1 || !wasNotified(p) || !p.isNotified() {
				t.Errorf("%s hears nothing; subscriptions: %d", p.name, ears.asked())
			}
			p.leave()
			wantQuiet(t, b)
		})
	}
}

// The last place leaves before Redis has answered.
func TestNotifierClosesWhileStarting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ears := fakeEars{takes: s}
		NewNotifier(&ears).place().leave()
		time.Sleep(s)
		wantEars(t, &ears, 1, 1)
		time.Sleep(idleTime)
		wantEars(t, &ears, 0, 1)
	})
}

func TestNotifierRingsOnlyTheOneThatIsMeant(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var ears fakeEars
		b := NewNotifier(&ears)
		a, c := b.place(), b.place()
		synctest.Wait()
		for range 3 { // one too many does nothing
			ears.publish(c.choose())
		}
		if wasNotified(a) || !wasNotified(c) || wasNotified(c) {
			t.Error("not c alone was rung, once")
		}
		gone := c.choose()
		c.leave()
		ears.publish(gone)
		ears.publish(b.channel + "/none")
		if wasNotified(a) {
			t.Error("a was rung for others")
		}
		a.leave()
		wantQuiet(t, b)
	})
}

// A subscription that breaks makes everybody ask, since what it should have heard is
// not known. Then there is a new one.
func TestNotifierBreaks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var ears fakeEars
		b := NewNotifier(&ears)
		a, c := b.place(), b.place()
		synctest.Wait()
		ears.publish(a.choose())
		wasNotified(a)
		c.choose()

		ears.set(func(e *fakeEars) { e.takes = s })
		ears.cut()
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
		wantEars(t, &ears, 1, 2)
		a.leave()
		c.leave()
		wantQuiet(t, b)
	})
}

// Where a subscription cannot be had, places say so, and do not ask for it all the
// time. That goes for one that breaks before it was of any use, too, and for one that
// takes too long.
func TestNotifierIsDeaf(t *testing.T) {
	for name, steps := range map[string]struct {
		before func(e *fakeEars)
		after  func(e *fakeEars, p *place)
	}{
		"denied": {before: func(e *fakeEars) { e.denied = true }},
		"breaks, and then it is denied": {after: func(e *fakeEars, p *place) {
			e.publish(p.choose())
			synctest.Wait()
			e.set(func(e *fakeEars) { e.denied = true })
			e.cut()
			synctest.Wait()
			p.isNotified() // asks for another
		}},
		"breaks before it was of any use": {after: func(e *fakeEars, _ *place) { e.cut() }},
		"distrusted":                      {after: func(_ *fakeEars, p *place) { p.notifier.replace() }},
		"takes too long": {
			before: func(e *fakeEars) { e.takes = time.Minute },
			after:  func(*fakeEars, *place) { time.Sleep(subscribeTime + 1) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var ears fakeEars
				if steps.before != nil {
					steps.before(&ears)
				}
				p := NewNotifier(&ears).place()
				synctest.Wait()
				if steps.after != nil {
					steps.after(&ears, p)
				}
				synctest.Wait()
				asked := ears.asked()
				for range 100 {
					if name := p.choose(); p.isNotified() || !strings.HasPrefix(name, "-") {
						t.Fatalf("%s relies on being told", name)
					}
				}
				wantEars(t, &ears, len(ears.listeners()), asked)
				old := p.choose()
				ears.set(func(e *fakeEars) { e.denied, e.takes = false, 0 })
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
				wantQuiet(t, p.notifier)
			})
		})
	}
}

// One that has heard something is replaced at once when it misses something.
func TestNotifierReplacesWhatItDistrusts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var ears fakeEars
		b := NewNotifier(&ears)
		p := b.place()
		synctest.Wait()
		before := ears.listeners()
		ears.publish(p.choose())
		wasNotified(p)
		b.replace()
		if !wasNotified(p) || p.isNotified() {
			t.Error("the place was not told to ask")
		}
		wantEars(t, &ears, 1, 2)
		if !p.isNotified() || slices.Equal(ears.listeners(), before) {
			t.Error("there is no new one")
		}
		b.replace()
		b.replace() // there is none now
		p.leave()
		wantQuiet(t, b)
	})
}

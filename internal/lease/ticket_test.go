package lease

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// foundBy puts a ticket into the line, and returns what it finds there, and how it enters again.
func foundBy(t *testing.T, l *Lines[string], label string) (ticket *Ticket[string], enter func()) {
	o := Options{Wait: time.Minute}.WithDefaults()
	ticket = &Ticket[string]{Key: "k", Label: label, Options: &o, Context: t.Context()}
	enter = func() {
		go func() { _, _ = l.Enter(ticket) }()
		synctest.Wait()
	}
	enter()
	return ticket, enter
}

func wantBehind(t *testing.T, ticket *Ticket[string], want string) {
	t.Helper()
	if behind, _ := ticket.Found().Behind(); behind != want {
		t.Errorf("%s waits behind %q, want %q", ticket.Label, behind, want)
	}
}

// meetElsewhere lets the head of k find that a token with the label has the lock, or nobody.
func meetElsewhere(l *Lines[string], label string) {
	var h Holder
	if label != "" {
		h.Token = NewToken(BondOf("k"), label, time.Now())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys["k"].meet(h)
}

// A ticket that enters again has come behind the head of that time, whatever a later head of the key finds.
func TestWhoEntersAgainHasFoundWhatItFoundFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := &Lines[string]{}
		_, _ = foundBy(t, l, "first")
		second, enterAgain := foundBy(t, l, "second")
		if !l.Next("k", "second", Anyone, func(string) {}) {
			t.Fatal("nobody waits")
		}
		l.Leave("k", &second.alarm) // it could not use the key
		third, _ := foundBy(t, l, "third")
		enterAgain()
		meetElsewhere(l, "elsewhere")
		wantBehind(t, second, "first")
		wantBehind(t, third, "elsewhere")
		l.Dismiss("k", ErrLost)
	})
}

// A try that finds no holder, since a slot moves or the lock is being passed on, does not tell who is waited for. A later
// one does.
func TestTheFirstTryFindsNoHolder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := &Lines[string]{}
		head, _ := foundBy(t, l, "head")
		behind, _ := foundBy(t, l, "behind")
		meetElsewhere(l, "")
		meetElsewhere(l, "elsewhere")
		meetElsewhere(l, "a later one")
		wantBehind(t, head, "elsewhere")
		wantBehind(t, behind, "elsewhere")
		l.Dismiss("k", ErrLost)
	})
}

// A caller leaves, and is refused before it is out of the line. It gets the reason why it left, and not the key.
func TestWhoLeavesIsRefused(t *testing.T) {
	for name, refuse := range map[string]func(at *line[string]){
		"dismissed": func(at *line[string]) { at.dismiss(ErrUnavailable) },
		"late":      func(at *line[string]) { at.pop().called <- outcome{late: true} },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				l := &Lines[string]{}
				_, _ = foundBy(t, l, "head")
				ctx, leave := context.WithCancel(t.Context())
				o := Options{}.WithDefaults()
				got := make(chan error)
				go func() {
					_, err := l.Enter(&Ticket[string]{Key: "k", Options: &o, Context: ctx})
					got <- err
				}()
				synctest.Wait()
				l.mu.Lock()
				leave() // the caller wakes, and waits for the mutex
				refuse(l.keys["k"])
				l.mu.Unlock()
				wantError(t, <-got, context.Canceled)
			})
		})
	}
}

package transport

import (
	"context"
	"testing"
	"time"
)

// A caller has less time than an exchange may take, and leaves. The others notice nothing, and
// its reply, when it comes, is nobody's.
func TestDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		short, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		w, a := p.begin("a")
		b, c := p.ask(short, "b"), p.ask(t.Context(), "c")
		w.wantCommands("b", "c")
		b.wantError(context.DeadlineExceeded, true)
		b.wantTook(s)
		w.answer("a", "b", "c")
		a.wantReply()
		c.wantReply()
		last := p.ask(t.Context(), "last")
		w.wantCommands("last") // on the same connection
		w.answer("last")
		last.wantReply()
	})
}

// The same if it is the first, or alone.
func TestDeadlineOfTheFirst(t *testing.T) {
	for name, company := range map[string]bool{"alone": false, "with another": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPuppet(t)
				short, stop := context.WithTimeout(t.Context(), s)
				defer stop()
				a := p.ask(short, "a")
				w := p.accept()
				w.wantCommands("a")
				var b *asked
				if company {
					b = p.ask(t.Context(), "b")
					w.wantCommands("b")
				}
				a.wantError(context.DeadlineExceeded, true)
				a.wantTook(s)
				w.answer("a")
				if company {
					b.wantWaiting()
					w.answer("b")
					b.wantReply()
				}
				c := p.ask(t.Context(), "c")
				w.wantCommands("c")
				w.answer("c")
				c.wantReply()
			})
		})
	}
}

// It has its reply as soon as that comes, and does not wait for those of others.
func TestDeadlineIsNotReached(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		short, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		a := p.ask(short, "a")
		w := p.accept()
		w.wantCommands("a")
		b := p.ask(t.Context(), "b")
		w.wantCommands("b")
		w.answer("a")
		a.wantReply()
		a.wantTook(0)
		b.wantWaiting()
		w.answer("b")
		b.wantReply()
	})
}

// A short deadline that was not answered does not save a Redis that hangs: the connection breaks
// when the exchange could not have been answered in time for anybody.
func TestDeadlineAndTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		short, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		a := p.ask(short, "a")
		w := p.accept()
		w.wantCommands("a")
		a.wantError(context.DeadlineExceeded, true)
		time.Sleep(time.Minute)
		w.wantEnd()
	})
}

// Without time, nothing is sent.
func TestNoTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		over, stop := context.WithTimeout(t.Context(), 0)
		defer stop()
		p.ask(over, "a").wantError(context.DeadlineExceeded, false)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		p.ask(cancelled, "b").wantError(context.Canceled, false)
		p.wantNoConnection()
	})
}

package transport

import (
	"errors"
	"testing"
	"time"
)

// A connection that nobody uses is closed after a minute. The next exchange makes another.
func TestLinkIsIdle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, a := p.begin("a")
		w.answer("a")
		a.wantReply()
		for range 3 {
			time.Sleep(59 * s)
			b := p.ask(t.Context(), "b")
			w.wantCommands("b") // still the same
			w.answer("b")
			b.wantReply()
		}
		begun := time.Now()
		w.wantEnd()
		if after := time.Since(begun); after != time.Minute {
			t.Errorf("closed after %v", after)
		}
		w, c := p.begin("c")
		w.answer("c")
		c.wantReply()
	})
}

// Close lets those finish that are under way, and refuses all others.
func TestClose(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, a := p.begin("a")
		for range 2 {
			if err := p.client.Close(); err != nil {
				t.Error(err)
			}
		}
		late := p.ask(t.Context(), "late")
		late.wantError(ErrClosed, false)
		late.wantTook(0)
		a.wantWaiting()
		w.answer("a")
		a.wantReply()
		w.wantEnd()
		if _, err := p.client.Subscribe(t.Context(), "c"); !errors.Is(err, ErrRefused) {
			t.Errorf("Subscribe: %v", err)
		}
	})
}

// Close while an idle connection is there closes it at once.
func TestCloseWhenIdle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, a := p.begin("a")
		w.answer("a")
		a.wantReply()
		p.client.Close()
		begun := time.Now()
		w.wantEnd()
		if after := time.Since(begun); after > 0 {
			t.Errorf("closed after %v", after)
		}
	})
}

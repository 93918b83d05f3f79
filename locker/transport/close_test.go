package transport

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A connection that nobody uses is closed after a minute. The next exchange makes another.
func TestLinkIsIdle(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w := p.wantServed("a")
		for range 3 {
			redistest.Elapse(59 * s)
			p.wantServedOn(w, "b") // still the same
		}
		w.wantEndAfter(time.Minute)
		p.wantServed("c")
	})
}

// Close lets those finish that are under way, refuses all others, and closes the connection then, or at
// once if it is idle.
func TestClose(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
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

		idle := newPuppet(t)
		w = idle.wantServed("a")
		idle.client.Close()
		w.wantEndAfter(0)
	})
}

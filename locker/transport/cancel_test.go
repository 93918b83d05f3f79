package transport

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// To cancel does not break off what was sent: the outcome would never be known. And still it waits
// no longer than its time.
func TestCancel(t *testing.T) {
	for name, answered := range map[string]bool{"and it is answered": true, "and it is not": false} {
		t.Run(name, func(t *testing.T) {
			withPuppet(t, func(t *testing.T, p *puppet) {
				ctx, cancel := context.WithCancel(t.Context())
				short, stop := context.WithTimeout(ctx, 30*s)
				defer stop()
				w, a := p.begin("a")
				b, c := p.ask(ctx, "b"), p.ask(short, "c")
				w.wantCommands("b", "c")
				cancel()
				b.wantWaiting()
				c.wantWaiting()
				if answered {
					w.answer("a", "b", "c")
					wantReplies(a, b, c)
					return
				}
				c.wantError(context.DeadlineExceeded, true)
				c.wantTook(30 * s)
				a.wantError(os.ErrDeadlineExceeded, true)
				b.wantError(os.ErrDeadlineExceeded, true)
				b.wantTook(time.Minute)
			})
		})
	}
}

// What was not sent yet, since somebody else's write lasts, can be withdrawn at any time. What is
// before it, and behind it, is sent all the same.
func TestWithdraw(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, first := p.begin("first")
		large := strings.Repeat("x", 20_000)
		ctx, cancel := context.WithCancel(t.Context())
		soon, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		a := p.ask(t.Context(), large)
		cancelled, b, hurried := p.ask(ctx, "cancelled"), p.ask(t.Context(), "b"), p.ask(soon, "hurried")
		cancel()
		cancelled.wantError(context.Canceled, false)
		cancelled.wantTook(0)
		hurried.wantError(context.DeadlineExceeded, false)
		hurried.wantTook(s)
		w.wantCommands(large, "b")
		w.wantSilence()
		w.answer("first", large, "b")
		wantReplies(first, a, b)
	})
}

// What was withdrawn may have been what the flush was to wait for.
func TestWithdrawTheLast(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, first := p.begin("first")
		large := strings.Repeat("x", 20_000)
		a, b := p.ask(t.Context(), "a"), p.ask(t.Context(), large)
		ctx, cancel := context.WithCancel(t.Context())
		last := p.ask(ctx, "last")
		w.wantCommands("a")
		synctest.Wait() // b is being written, and last is behind it
		cancel()
		last.wantError(context.Canceled, false)
		w.wantCommands(large)
		w.answer("first", "a", large)
		wantReplies(first, a, b)
		b.wantTook(0)
	})
}

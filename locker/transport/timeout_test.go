package transport

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Redis hangs. The first call has waited for all of its time. The others have time left, and may try again on
// another connection. No caller gets a late reply from the old connection.
func TestTimeout(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, a := p.begin("a")
		redistest.Elapse(s)
		b, c := p.ask(t.Context(), "b"), p.ask(t.Context(), "c")
		w.wantCommands("b", "c")
		a.wantError(os.ErrDeadlineExceeded, true)
		a.wantTook(time.Minute)
		b.wantBroken()
		if why := c.wantBroken().Cause; !errors.Is(why, os.ErrDeadlineExceeded) {
			t.Errorf("the connection broke because of %v, want a's timeout", why)
		}
		b.wantTook(59 * s)
		w.wantEnd()
		w.answer("a", "b", "c") // late
		p.acceptProbe().wantEnd()
		p.wantServed("d")
	})
}

// A silent server may be gone, while its address already leads to another. That costs one timeout, not one for
// each connection.
func TestTimeoutGivesUpAllConnections(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, a := p.begin("a")
		other := p.acceptProbe()
		b := p.ask(t.Context(), "b")
		other.wantCommands("b")
		a.wantError(os.ErrDeadlineExceeded, true)
		w.wantEnd()
		other.wantEnd()
		b.wantError(os.ErrDeadlineExceeded, true)
	})
}

// Redis does not even read, for ever. All calls end in time, and the next round trip gets another connection.
func TestWriteHangs(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		a := p.ask(t.Context(), "a")
		hurried := p.hurry("hurried")
		redistest.Elapse(s)
		b := p.ask(t.Context(), "b")
		hurried.wantError(context.DeadlineExceeded, false)
		a.wantError(os.ErrDeadlineExceeded, true)
		a.wantTook(time.Minute)
		p.accept()
		p.accept()
		w := p.accept() // b goes to another connection
		w.serve(b)
		b.wantTook(59 * s)
	})
}

// A caller may already have its own reply while its write for another call hangs. It returns at the latest when
// the time of its own round trip ends.
func TestWriteHangsForTheNext(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		a := p.ask(t.Context(), "a")
		w := p.accept()
		redistest.Elapse(5 * s)
		b := p.ask(t.Context(), strings.Repeat("x", 20_000))
		w.wantCommands("a")
		w.answer("a") // while a's caller writes the large one
		a.wantReply()
		a.wantTook(time.Minute)
		b.wantBroken()
		b.wantTook(55 * s)
	})
}

// A caller with little time whose own write hangs returns in its time, too.
func TestWriteHangsForOneWithLittleTime(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		hurried := p.hurry("hurried")
		p.accept()
		hurried.wantError(context.DeadlineExceeded, true)
		hurried.wantTook(s)
	})
}

// A caller with less time than a round trip may take leaves, whether it is alone or anywhere among others. The others
// do not notice, and no caller gets its reply when that arrives.
func TestDeadlineOfTheFirst(t *testing.T) {
	each(t, map[string][]string{
		"alone": {"hurried"}, "the first": {"hurried", "b", "c"}, "in the middle": {"a", "hurried", "c"}, "the last": {"a", "hurried"},
	}, func(t *testing.T, crowd []string) {
		p := newPuppet(t)
		var w *wire
		var others []*asked
		var hurried *asked
		for _, who := range crowd {
			if who == "hurried" {
				hurried = p.hurry(who)
			} else {
				others = append(others, p.ask(t.Context(), who))
			}
			if w == nil {
				w = p.accept()
			}
			w.wantCommands(who)
		}
		hurried.wantError(context.DeadlineExceeded, true)
		hurried.wantTook(s)
		i := slices.Index(crowd, "hurried")
		w.answer(crowd[:i+1]...)
		wantReplies(others[:i]...)
		for _, a := range others[i:] {
			a.wantWaiting()
		}
		w.answer(crowd[i+1:]...)
		wantReplies(others...)
		p.wantServedOn(w, "next") // on the same connection
	})
}

// A caller with a short deadline leaves without a reply. Redis still counts as hanging: the connection breaks at the
// time by which any other caller would have had its reply.
func TestDeadlineAndTimeout(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		short, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		a := p.ask(short, "a")
		w := p.accept()
		w.wantCommands("a")
		a.wantError(context.DeadlineExceeded, true)
		w.wantEndAfter(time.Minute - s)
	})
}

// Cancelling does not break off a command that was sent, since its outcome would never be known. But the caller
// waits no longer than its time.
func TestCancel(t *testing.T) {
	each(t, map[string]bool{"and it is answered": true, "and it is not": false}, func(t *testing.T, answered bool) {
		p := newPuppet(t)
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
			c.wantTook(0) // not until its deadline
			return
		}
		c.wantError(context.DeadlineExceeded, true)
		c.wantTook(30 * s)
		a.wantError(os.ErrDeadlineExceeded, true)
		b.wantError(os.ErrDeadlineExceeded, true)
		b.wantTook(time.Minute)
	})
}

// A command that waits for the end of another call's write was not sent, and can be withdrawn at any time. The
// commands before and behind it are still sent.
func TestWithdraw(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, first := p.begin("first")
		large := strings.Repeat("x", 20_000)
		ctx, cancel := context.WithCancel(t.Context())
		a := p.ask(t.Context(), large)
		cancelled, b, hurried := p.ask(ctx, "cancelled"), p.ask(t.Context(), "b"), p.hurry("hurried")
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

// The flush may have waited for the command that was withdrawn.
func TestWithdrawTheLast(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, first := p.begin("first")
		large := strings.Repeat("x", 20_000)
		a, b := p.ask(t.Context(), "a"), p.ask(t.Context(), large)
		ctx, cancel := context.WithCancel(t.Context())
		last := p.ask(ctx, "last")
		w.wantCommands("a")
		synctest.Wait() // b is being written, and last waits behind it
		cancel()
		last.wantError(context.Canceled, false)
		w.wantCommands(large)
		w.answer("first", "a", large)
		wantReplies(first, a, b)
		b.wantTook(0)
	})
}

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

// Redis hangs. The one that came first has waited for its whole time. The others have time left,
// and may try again on another connection. No reply of the old one gets to anybody.
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

// A server that is silent may be there no more, while its address leads to another already. That
// costs one timeout, not one for each connection.
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

// Redis does not even read, for ever. All end in time, and the next round trip finds another
// connection.
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
		w := p.accept() // b goes to another
		w.serve(b)
		b.wantTook(59 * s)
	})
}

// A caller that writes for another when that hangs has no more time for it than for its own
// round trip, whose reply it has.
func TestWriteHangsForTheNext(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		a := p.ask(t.Context(), "a")
		w := p.accept()
		redistest.Elapse(5 * s)
		b := p.ask(t.Context(), strings.Repeat("x", 20_000))
		w.wantCommands("a")
		w.answer("a") // while its caller writes the large one
		a.wantReply()
		a.wantTook(time.Minute)
		b.wantBroken()
		b.wantTook(55 * s)
	})
}

// The same if the one whose write hangs has little time.
func TestWriteHangsForOneWithLittleTime(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		hurried := p.hurry("hurried")
		p.accept()
		hurried.wantError(context.DeadlineExceeded, true)
		hurried.wantTook(s)
	})
}

// A caller has less time than a round trip may take, and leaves, wherever it stands among others or
// alone. The others notice nothing, and its reply, when it comes, is nobody's.
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

// A short deadline that was not answered does not save a Redis that hangs: the connection breaks
// when the round trip could not have been answered in time for anybody.
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

// To cancel does not break off what was sent: the outcome would never be known. And still it waits
// no longer than its time.
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
			c.wantTook(0) // and not until its deadline
			return
		}
		c.wantError(context.DeadlineExceeded, true)
		c.wantTook(30 * s)
		a.wantError(os.ErrDeadlineExceeded, true)
		b.wantError(os.ErrDeadlineExceeded, true)
		b.wantTook(time.Minute)
	})
}

// A command that waits until another's write is done was not sent, and can be withdrawn at any time.
// The commands before it and behind it are sent all the same.
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

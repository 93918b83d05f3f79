package transport

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Redis hangs. The one that came first has waited for its whole time. The others have time left,
// and may try again on another connection. No reply of the old one gets to anybody.
func TestTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, a := p.begin("a")
		time.Sleep(s)
		b, c := p.ask(t.Context(), "b"), p.ask(t.Context(), "c")
		w.wantCommands("b", "c")
		a.wantError(os.ErrDeadlineExceeded, true)
		a.wantTook(time.Minute)
		b.wantBroken()
		c.wantBroken()
		b.wantTook(59 * s)
		w.wantEnd()
		w.answer("a", "b", "c") // late
		w, d := p.begin("d")
		w.answer("d")
		d.wantReply()
	})
}

// A server that is silent may be there no more, while its address leads to another already. That
// costs one timeout, not one for each connection.
func TestTimeoutGivesUpAllConnections(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, a := p.begin("a")
		time.Sleep(8 * s)
		other, b := p.begin("b")
		other.answer("b")
		b.wantReply()
		a.wantError(os.ErrDeadlineExceeded, true)
		w.wantEnd()
		other.wantEnd()
	})
}

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

// To cancel does not break off what was sent: the outcome would never be known.
func TestCancel(t *testing.T) {
	inBubble(t, func(t *testing.T) {
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
		w.answer("a", "b", "c")
		for _, x := range []*asked{a, b, c} {
			x.wantReply()
		}
	})
}

// And still it waits no longer than its time.
func TestCancelAndTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		ctx, cancel := context.WithCancel(t.Context())
		short, stop := context.WithTimeout(ctx, 30*s)
		defer stop()
		w, a := p.begin("a")
		b, c := p.ask(ctx, "b"), p.ask(short, "c")
		w.wantCommands("b", "c")
		cancel()
		c.wantError(context.DeadlineExceeded, true)
		c.wantTook(30 * s)
		a.wantError(os.ErrDeadlineExceeded, true)
		b.wantError(os.ErrDeadlineExceeded, true)
		b.wantTook(time.Minute)
	})
}

// What was not sent yet, since somebody else's write lasts, can be withdrawn at any time.
func TestWithdraw(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
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
		for _, x := range []*asked{first, a, b} {
			x.wantReply()
		}
	})
}

// What was withdrawn may have been what the flush was to wait for. What is before it is sent
// all the same.
func TestWithdrawTheLast(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
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
		for _, x := range []*asked{first, a, b} {
			x.wantReply()
			x.wantTook(0)
		}
	})
}

// Redis does not even read, for ever. All end in time, and the next exchange finds another
// connection.
func TestWriteHangs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		a := p.ask(t.Context(), "a")
		soon, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		hurried := p.ask(soon, "hurried")
		time.Sleep(s)
		b := p.ask(t.Context(), "b")
		hurried.wantError(context.DeadlineExceeded, false)
		a.wantError(os.ErrDeadlineExceeded, true)
		a.wantTook(time.Minute)
		p.accept()
		w := p.accept() // b goes to another
		w.wantCommands("b")
		w.answer("b")
		b.wantReply()
		b.wantTook(59 * s)
	})
}

// A caller that writes for another when that hangs has no more time for it than for its own
// exchange, whose reply it has.
func TestWriteHangsForTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		a := p.ask(t.Context(), "a")
		w := p.accept()
		time.Sleep(5 * s)
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
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		soon, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		hurried := p.ask(soon, "hurried")
		p.accept()
		hurried.wantError(context.DeadlineExceeded, true)
		hurried.wantTook(s)
	})
}

// Arguments are the caller's again when Do has returned, also in the middle of a write.
func TestArgumentsAreTheCallers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, first := p.begin("first")
		record := bytes.Repeat([]byte("x"), 20_000)
		want := string(record)
		soon, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		failed := make(chan error, 1)
		go func() {
			_, err := p.client.Do(soon, "", Command{"ECHO", record})
			clear(record)
			failed <- err
		}()
		if err := <-failed; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrRefused) {
			t.Error(err)
		}
		for range 100 {
			runtime.Gosched()
		}
		w.wantCommands(want)
		w.answer("first", want)
		first.wantReply()
		synctest.Wait()
	})
}

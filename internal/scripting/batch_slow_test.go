package scripting

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

// The driver's caller has less time than an exchange may take, and leaves. The others
// notice nothing.
func TestBatchDriverLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		first := p.ask(t.Context(), "first")
		w := p.accept()
		w.wantCommands("first")
		short, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		a, b := p.ask(short, "a"), p.ask(t.Context(), "b")
		w.answer("first")
		first.wantReply()
		w.wantCommands("a", "b")
		a.wantError(context.DeadlineExceeded, true)
		if a.took != s {
			t.Errorf("it took %v", a.took)
		}
		b.wantWaiting()
		w.answer("a", "b")
		b.wantReply()
		last := p.ask(t.Context(), "last")
		w.wantCommands("last") // on the same connection
		w.answer("last")
		last.wantReply()
	})
}

// The driver's time is over: it was the first, so the others have about as little
// left, but with what they have they try on another connection. No reply of the
// old one gets to anybody.
func TestBatchDriverRunsOutOfTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		first := p.ask(t.Context(), "first")
		w := p.accept()
		w.wantCommands("first")
		a := p.ask(t.Context(), "a")
		time.Sleep(s)
		b, c := p.ask(t.Context(), "b"), p.ask(t.Context(), "c")
		w.answer("first")
		first.wantReply()
		w.wantCommands("a", "b", "c") // and Redis hangs

		a.wantError(os.ErrDeadlineExceeded, true)
		if a.took != time.Minute {
			t.Errorf("it took %v", a.took)
		}
		other := p.accept()
		w.answer("a", "b", "c") // late
		other.serve("b", "c")
		b.wantReply()
		c.wantReply()
		last := p.ask(t.Context(), "last")
		other.wantCommands("last")
		other.answer("last")
		last.wantReply()
	})
}

// Who has less time than an exchange may take leaves with its reply, and does not break
// the connection of those that it has taken along.
func TestBatchDriverIsNotHeldUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		first := p.ask(t.Context(), "first")
		w := p.accept()
		w.wantCommands("first")
		short, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		a, b := p.ask(short, "a"), p.ask(t.Context(), "b")
		w.answer("first")
		first.wantReply()
		w.wantCommands("a", "b")
		w.answer("a") // and Redis hangs

		a.wantReply()
		if a.took != 0 {
			t.Errorf("it took %v", a.took)
		}
		time.Sleep(2 * s)
		b.wantWaiting()
		w.answer("b")
		b.wantReply()
	})
}

// The time of one that is taken along is over: it leaves. The others notice nothing,
// and its reply, when it comes, is nobody's.
func TestBatchPassengerRunsOutOfTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		short, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		w, a, b, c := batch(t, p, short)
		b.wantError(context.DeadlineExceeded, true)
		if b.took != s {
			t.Errorf("it took %v", b.took)
		}
		w.answer("a", "b", "c")
		a.wantReply()
		c.wantReply()
		last := p.ask(t.Context(), "last")
		w.wantCommands("last") // on the same connection
		w.answer("last")
		last.wantReply()
	})
}

// To cancel does not break off what was sent: the answer would never be known.
func TestBatchPassengerIsCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		w, a, b, c := batch(t, p, ctx)
		cancel()
		b.wantWaiting()
		w.answer("a", "b", "c")
		for _, asked := range []*asked{a, b, c} {
			asked.wantReply()
		}
	})
}

// And still it waits no longer than its time.
func TestBatchPassengerIsCancelledAndRunsOutOfTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		w, a, b, c := batch(t, p, ctx)
		cancel()
		a.wantError(os.ErrDeadlineExceeded, true)
		b.wantError(context.DeadlineExceeded, true)
		c.wantError(context.DeadlineExceeded, true)
		if b.took != time.Minute || c.took != time.Minute {
			t.Errorf("they waited %v and %v", b.took, c.took)
		}
		w.answer("a", "b", "c") // late
	})
}

// Redis does not even read. Whoever was not sent yet may go at any time, whoever is
// being sent when that ends.
func TestBatchIsStuckInAWrite(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		first := p.ask(t.Context(), "first")
		w := p.accept()
		w.wantCommands("first")
		large := strings.Repeat("x", maxBytes/2)
		ctx, cancel := context.WithCancel(t.Context())
		soon, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		a, b := p.ask(t.Context(), large), p.ask(t.Context(), "b")
		cancelled, hurried := p.ask(ctx, "cancelled"), p.ask(soon, "hurried")
		w.answer("first")
		first.wantReply()

		cancel()
		cancelled.wantError(context.Canceled, false)
		hurried.wantError(context.DeadlineExceeded, false)
		w.wantCommands(large, "b")
		w.wantSilence()
		w.answer(large, "b")
		a.wantReply()
		b.wantReply()
	})
}

// It is stuck, and stays so. The others wait no longer than they want to, and the
// next caller finds another connection, if the pool allows one.
func TestBatchIsStuckForever(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 0)
		stuck := p.crowd("a", "b", "c", "d")
		waiting := p.ask(t.Context(), "waiting")
		waiting.wantError(context.DeadlineExceeded, false)
		if waiting.took != time.Minute {
			t.Errorf("it waited %v", waiting.took)
		}
		for range stuck {
			defer p.accept().Close()
		}
		time.Sleep(time.Nanosecond) // whoever drives has no time left
		late := p.ask(t.Context(), "late")
		w := p.accept()
		w.wantCommands("late")
		w.answer("late")
		late.wantReply()
	})
}

// Arguments belong to the caller again when Eval has returned, which may be before
// any reply. So it does not return while they are being sent.
func TestBatchArgumentsAreTheCallers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		first := p.ask(t.Context(), "first")
		w := p.accept()
		w.wantCommands("first")
		a := p.ask(t.Context(), "a")
		record := bytes.Repeat([]byte("x"), maxBytes/2)
		want := string(record)
		soon, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		failed := make(chan error, 1)
		go func() {
			_, err := p.client.Run(soon, echoScript, []string{"key"}, record)
			clear(record)
			failed <- err
		}()
		synctest.Wait()
		w.answer("first")
		first.wantReply()

		time.Sleep(s) // the record is being sent, and its time is over
		for range 100 {
			runtime.Gosched() // an invitation to clear it
		}
		w.wantCommands("a", want)
		if err := <-failed; !errors.Is(err, context.DeadlineExceeded) || !Ambiguous(err) {
			t.Error(err)
		}
		w.answer("a", want)
		a.wantReply()
	})
}

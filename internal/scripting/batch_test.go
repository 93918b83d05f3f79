package scripting

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// batch has a, b and c wait for a lane, and returns when they are on their way in
// one batch, which a drives.
func batch(t *testing.T, p *puppet, ctxOfB context.Context) (w *wire, a, b, c *asked) {
	t.Helper()
	first := p.ask(t.Context(), "first")
	w = p.accept()
	w.wantCommands("first")
	a, b, c = p.ask(t.Context(), "a"), p.ask(ctxOfB, "b"), p.ask(t.Context(), "c")
	w.answer("first")
	first.wantReply()
	w.wantCommands("a", "b", "c")
	return w, a, b, c
}

// A connection that breaks in the middle: who has a reply has it, and the others
// try again, on another connection, without noticing.
func TestBatchBreaks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		w, a, b, c := batch(t, p, t.Context())
		w.answer("a")
		w.say("$1\r\nb") // half of it
		w.Close()
		a.wantReply()
		w = p.accept()
		w.serve("b", "c")
		w.wantSilence()
		b.wantReply()
		c.wantReply()
	})
}

// It breaks again, and then there is no other: whether Redis did it is not known.
func TestBatchBreaksAndNoConnection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		w, a, b, c := batch(t, p, t.Context())
		refused := errors.New("connection refused")
		p.pool.Dial = func() (redis.Conn, error) { return nil, refused }
		w.Close()
		for _, asked := range []*asked{a, b, c} {
			asked.wantError(refused, true)
		}
	})
}

// It breaks while the commands are sent. Those behind were certainly not sent, and
// are told so if there is no other connection.
func TestBatchBreaksWhileSending(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		first := p.ask(t.Context(), "first")
		w := p.accept()
		w.wantCommands("first")
		large := strings.Repeat("x", maxBytes/2) // more than redigo keeps back
		a, b := p.ask(t.Context(), large), p.ask(t.Context(), "b")
		w.answer("first")
		first.wantReply()
		a.wantWaiting() // a drives, and its write lasts
		refused := errors.New("connection refused")
		p.pool.Dial = func() (redis.Conn, error) { return nil, refused }
		w.Close()
		a.wantError(refused, true) // which is all that can be known
		b.wantError(refused, false)
	})
}

// What Redis says about one command is not the others' business.
func TestBatchRefusal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		w, a, b, c := batch(t, p, t.Context())
		w.answer("a")
		w.say("-OOM no memory left\r\n")
		w.answer("c")
		a.wantReply()
		b.wantError(redis.Error("OOM no memory left"), false)
		c.wantReply()
	})
}

// Redis does not know a script: who sent it sends it again, by its text.
func TestBatchUnknownScript(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		w, a, b, c := batch(t, p, t.Context())
		w.answer("a")
		w.say("-NOSCRIPT No matching script. Please use EVAL.\r\n")
		w.answer("c")
		a.wantReply()
		c.wantReply()
		command := w.next()
		if command[0] != "EVAL" || command[1] != echoScript.framed || nameOf(command) != "b" {
			t.Errorf("sent %q", command)
		}
		w.answer("b")
		b.wantReply()
	})
}

// Redigo panics where a reply is absurd. That goes to the driver; the others try
// again, and the connection, in the middle of who knows what, is not used again.
func TestBatchPanic(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		w, a, b, c := batch(t, p, t.Context())
		w.say("$9223372036854775807\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nx\r\n")
		if a.wait(); a.panicked == nil {
			t.Errorf("no panic: %v", a.err)
		}
		other := p.accept()
		other.serve("b", "c")
		b.wantReply()
		c.wantReply()
	})
}

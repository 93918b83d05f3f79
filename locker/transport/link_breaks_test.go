package transport

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A connection that breaks: the callers with a reply have it, and the others learn that their
// commands may have been done.
func TestLinkBreaks(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, a := p.begin("a")
		b, c := p.ask(t.Context(), "b"), p.ask(t.Context(), "c")
		w.wantCommands("b", "c")
		w.answer("a")
		w.say("$1\r\nb") // half of it
		w.Close()
		a.wantReply()
		b.wantBroken()
		c.wantBroken()
		p.wantServed("d")
	})
}

// It breaks while commands are sent. Those behind were certainly not sent, and go to the next
// connection, without their callers noticing.
func TestLinkBreaksWhileSending(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, first := p.begin("first")
		a, b := p.ask(t.Context(), strings.Repeat("x", 20_000)), p.ask(t.Context(), "b")
		a.wantWaiting() // a's write lasts
		w.Close()
		first.wantBroken()
		a.wantBroken()
		w = p.accept()
		w.wantCommands("b")
		w.answer("b")
		b.wantReply()
	})
}

// A connection that breaks while somebody writes ends the exchanges only when that has ended: the
// arguments are read until then.
func TestLinkBreaksDuringWrite(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		written := make(chan struct{})
		p.pool.Dial = func() (redis.Conn, error) { return redis.NewConn(slow{written}, 0, 0), nil }
		a, b := p.ask(t.Context(), "a"), p.ask(t.Context(), "b")
		p.client.Reset()
		a.wantWaiting()
		b.wantWaiting()
		p.pool.Dial = p.dial
		close(written)
		a.wantBroken()
		w := p.accept()
		w.wantCommands("b") // which was not sent
		w.answer("b")
		b.wantReply()
	})
}

// A slow connection takes its time to end a write, even when it has been closed.
type slow struct{ written chan struct{} }

func (s slow) Write([]byte) (int, error)      { <-s.written; return 0, io.ErrClosedPipe }
func (s slow) Read([]byte) (int, error)       { <-s.written; return 0, io.ErrClosedPipe }
func (slow) Close() error                     { return nil }
func (slow) SetReadDeadline(time.Time) error  { return nil }
func (slow) SetWriteDeadline(time.Time) error { return nil }
func (slow) SetDeadline(time.Time) error      { return nil }
func (slow) LocalAddr() net.Addr              { return nil }
func (slow) RemoteAddr() net.Addr             { return nil }

// Redigo panics where a reply is absurd, or a command has no name. That breaks the connection, not
// the process.
func TestLinkPanics(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, a := p.begin("a")
		b := p.ask(t.Context(), "b")
		w.wantCommands("b")
		w.say("$9223372036854775807\r\n")
		a.wantBroken()
		b.wantBroken()
		nameless := p.do(t.Context(), "nameless", Command{})
		p.accept()
		nameless.wantBroken()
		p.wantServed("c")
	})
}

// A reply before the command has been sent belongs to another. The connection is no good, and
// the command goes nowhere.
func TestLinkReplyComesTooSoon(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, first := p.begin("first")
		a, large := p.ask(t.Context(), "a"), p.ask(t.Context(), strings.Repeat("x", 20_000))
		w.wantCommands("a") // and the large one is being written
		w.answer("first", "a", "a")
		wantReplies(first, a)
		large.wantBroken()
		if rest, err := io.ReadAll(w.r); len(rest) > 20_000 || err != nil {
			t.Errorf("%d bytes of the command, %v", len(rest), err)
		}
	})
}

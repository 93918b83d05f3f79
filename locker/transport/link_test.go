package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// No command waits for the replies to others before it is sent, and each caller gets its own reply.
func TestLinkSendsAtOnce(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, first := p.begin("first")
		crowd := []*asked{first}
		for _, name := range []string{"a", "b", "c"} {
			crowd = append(crowd, p.ask(t.Context(), name))
			w.wantCommands(name)
		}
		p.wantNoConnection()
		w.answer("first", "a")
		crowd[1].wantReply()
		crowd[2].wantWaiting()
		w.answer("b", "c")
		wantReplies(crowd...)
	})
}

// Commands that come while a caller writes are sent together, in the order in which they came.
func TestLinkSharesWrites(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, first := p.begin("first")
		crowd := p.crowd("a", "b", "c", "d") // a is being written
		writes := w.writes.Load()
		w.wantCommands("a", "b", "c", "d")
		if n := w.writes.Load() - writes; n != 1 {
			t.Errorf("%d writes, want one for all behind a", n)
		}
		w.answer("first", "a", "b", "c", "d")
		for _, a := range append(crowd, first) {
			a.wantReply()
		}
	})
}

// One caller reads while another writes: a proxy may stop reading until its replies are read.
func TestLinkReadsWhileItWrites(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w := p.wantServed("first")
		large := strings.Repeat("x", 100_000)
		a := p.ask(t.Context(), "a") // is being written
		b, c := p.ask(t.Context(), large), p.ask(t.Context(), "c")
		w.wantCommands("a")
		w.answer("a") // while a's caller writes the large one
		w.wantCommands(large)
		a.wantReply()
		w.wantCommands("c")
		w.answer(large, "c")
		wantReplies(b, c)
	})
}

// A caller that has its reply does not go on writing for calls that came later.
func TestLinkWriterLeaves(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w := p.wantServed("first")
		a, b := p.ask(t.Context(), "a"), p.ask(t.Context(), "b")
		w.wantCommands("a")
		w.answer("a") // while its caller writes b
		c := p.ask(t.Context(), "c")
		w.wantCommands("b")
		a.wantReply()
		w.wantCommands("c")
		w.answer("b", "c")
		wantReplies(b, c)
	})
}

// A connection breaks. Callers whose replies have arrived get them. The others learn that their commands may have
// been done.
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

// There are two connections, and one breaks, as in a failover. The other may lead to the old master, too, and nobody
// would notice. So it takes no more commands.
func TestLinkBreaksBesideAnother(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, a := p.begin("a")
		other := p.acceptProbe()
		other.say("+PONG\r\n")
		w.Close()
		a.wantBroken()
		other.wantEndAfter(0)
		p.wantServed("b")
	})
}

// A connection breaks while commands are sent. The commands behind were certainly not sent. They go to the next
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
		w.serve(b)
	})
}

// A connection breaks while a caller writes. The round trips end only when the write has ended, since the
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
		w.wantCommands("b") // b was not sent
		w.answer("b")
		b.wantReply()
	})
}

// A slow connection needs time to end a write, even after it was closed.
type slow struct{ written chan struct{} }

func (s slow) Write([]byte) (int, error)      { <-s.written; return 0, io.ErrClosedPipe }
func (s slow) Read([]byte) (int, error)       { <-s.written; return 0, io.ErrClosedPipe }
func (slow) Close() error                     { return nil }
func (slow) SetReadDeadline(time.Time) error  { return nil }
func (slow) SetWriteDeadline(time.Time) error { return nil }
func (slow) SetDeadline(time.Time) error      { return nil }
func (slow) LocalAddr() net.Addr              { return nil }
func (slow) RemoteAddr() net.Addr             { return nil }

// Redigo panics if a reply is absurd, or a command has no name. That breaks the connection, and does not end the
// process.
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

// A reply that arrives before its command was sent belongs to another call. The connection cannot be trusted, and
// the command is sent nowhere else.
func TestLinkReplyComesTooSoon(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, first := p.begin("first")
		a, large := p.ask(t.Context(), "a"), p.ask(t.Context(), strings.Repeat("x", 20_000))
		w.wantCommands("a") // the large one is being written
		w.answer("first", "a", "a")
		wantReplies(first, a)
		large.wantBroken()
		if rest, err := io.ReadAll(w.r); len(rest) > 20_000 || err != nil {
			t.Errorf("%d bytes of the command, %v", len(rest), err)
		}
	})
}

const readOnly = "-READONLY You can't write against a read only replica.\r\n"

// After a failover the open connection leads to a replica. Replies on it still count, but the next round trip
// goes to the present master.
func TestLinkIsDemoted(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, a := p.begin("a")
		b := p.ask(t.Context(), "b")
		w.wantCommands("b")
		w.say("-ERR user_script:1: READONLY You can't write against a read only replica.\r\n")
		<-a.done
		other, c := p.begin("c")
		w.answer("b")
		b.wantReply()
		other.answer("c")
		c.wantReply()
		p.wantServedOn(other, "last")
		w.wantEnd()
	})
}

// Several calls learn one after another that the server was demoted, or that the connection breaks. The
// connection to which the first of these refusals has led is not affected: it is kept.
func TestLinkIsDemotedOnce(t *testing.T) {
	each(t, map[string]func(w *wire, b *asked){
		"demoted again": func(w *wire, b *asked) { w.say(readOnly); <-b.done },
		"breaks":        func(w *wire, b *asked) { w.Close(); b.wantBroken() },
	}, func(t *testing.T, end func(w *wire, b *asked)) {
		p := newPuppet(t)
		w, a := p.begin("a")
		b := p.ask(t.Context(), "b")
		w.wantCommands("b")
		w.say(readOnly)
		<-a.done
		other, c := p.begin("c")
		end(w, b)
		d := p.ask(t.Context(), "d")
		p.wantNoConnection()
		other.wantCommands("d")
		other.answer("c", "d")
		wantReplies(c, d)
	})
}

// While the address still leads to a replica, the client dials again from time to time, not for each reply.
func TestLinkStillLeadsToAReplica(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, a := p.begin("a")
		w.say(readOnly)
		<-a.done
		other, b := p.begin("b")
		other.say(readOnly)
		<-b.done
		redistest.Elapse(p.client.timeout / 4)
		c := p.ask(t.Context(), "c")
		p.wantNoConnection()
		other.wantCommands("c")
		other.say(readOnly)
		<-c.done
		p.wantServed("d")
	})
}

// The layer above has got a stray reply, so nothing on this connection can be trusted.
func TestReset(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, a := p.begin("a")
		b := p.ask(t.Context(), "b")
		w.wantCommands("b")
		p.client.Reset()
		a.wantBroken()
		b.wantBroken()
		w.wantEnd()
		p.client.Reset() // there is no connection
		p.wantServed("c")
	})
}

// A connection that nobody uses is closed after a minute. The next round trip makes another.
func TestLinkIsIdle(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w := p.wantServed("a")
		for range 3 {
			redistest.Elapse(59 * s)
			p.wantServedOn(w, "b") // still the same connection
		}
		w.wantEndAfter(time.Minute)
		p.wantServed("c")
	})
}

// Close lets calls that are under way finish, and refuses all others. Then, or at once if the connection is idle,
// it closes the connection.
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

// subscribing calls Subscribe, and returns the wire once the command has come.
func (p *puppet) subscribing(ctx context.Context) (*wire, <-chan error) {
	p.t.Helper()
	done := make(chan error, 1)
	go func() {
		s, err := p.client.Subscribe(ctx, "c")
		if err == nil {
			defer s.Close()
			_, err = s.Receive()
		}
		done <- err
	}()
	w := p.accept()
	w.wantCommands("c")
	return w, done
}

// Cancelling the context ends a Subscribe that waits for its reply, and its connection.
func TestSubscribeIsCancelled(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		ctx, cancel := context.WithCancel(t.Context())
		w, done := p.subscribing(ctx)
		begun := time.Now()
		cancel()
		if err := <-done; !errors.Is(err, ErrUnavailable) || time.Since(begun) > 0 {
			t.Errorf("%v, after %v", err, time.Since(begun))
		}
		w.wantEnd()
	})
}

// Redigo panics if a message is absurd. That ends the subscription, not the process.
func TestSubscriptionPanics(t *testing.T) {
	const absurd = "$9223372036854775807\r\n"
	each(t, map[string]string{
		"at first": absurd, "later": "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n" + absurd,
	}, func(t *testing.T, text string) {
		p := newPuppet(t)
		w, done := p.subscribing(t.Context())
		w.say(text)
		if err := <-done; !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		w.wantEnd()
	})
}

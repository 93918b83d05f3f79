package transport

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Nothing waits for the replies of others before it is sent, and each gets its own.
func TestLinkSendsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
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
		for _, a := range crowd {
			a.wantReply()
		}
	})
}

// What comes while somebody writes is sent together, in the order in which it came.
func TestLinkSharesWrites(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
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

// The commands of an exchange are one write, and have a reply each.
func TestLinkSendsSeveralCommands(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, first := p.begin("first")
		writes := w.writes.Load()
		x := p.do(t.Context(), "x", Command{"SET", "k", []byte("1")}, Command{"INCRBY", "k", 2}, Command{"GET", int64(3)})
		w.wantCommands("1", "2", "3")
		if n := w.writes.Load() - writes; n != 1 {
			t.Errorf("%d writes, want one", n)
		}
		w.answer("first")
		first.wantReply()
		w.say("+OK\r\n-ERR no number\r\n")
		x.wantWaiting()
		w.say("*2\r\n:4\r\n$-1\r\n")
		<-x.done
		if x.err != nil || len(x.replies) != 3 || x.replies[0] != "OK" ||
			x.replies[1] != redis.Error("ERR no number") || x.replies[2].([]any)[0] != int64(4) {
			t.Errorf("%v, %v", x.replies, x.err)
		}
	})
}

// An exchange that is alone needs no goroutine but its own.
func TestLinkNeedsNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // not in parallel with others, whose goroutines would count
		p := newPuppet(t)
		w, first := p.begin("first")
		w.answer("first")
		first.wantReply()
		synctest.Wait()
		before := runtime.NumGoroutine()
		a := p.ask(t.Context(), "a")
		w.wantCommands("a")
		a.wantWaiting()
		if n := runtime.NumGoroutine() - before; n != 1 {
			t.Errorf("%d goroutines, want the caller's", n)
		}
		w.answer("a")
		a.wantReply()
	})
}

// Somebody reads while somebody writes: a proxy may stop reading until its replies are read.
func TestLinkReadsWhileItWrites(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, first := p.begin("first")
		w.answer("first")
		first.wantReply()
		large := strings.Repeat("x", 100_000)
		a := p.ask(t.Context(), "a") // is being written
		b, c := p.ask(t.Context(), large), p.ask(t.Context(), "c")
		w.wantCommands("a")
		w.answer("a") // while a's caller writes the large one
		w.wantCommands(large)
		a.wantReply()
		w.wantCommands("c")
		w.answer(large, "c")
		b.wantReply()
		c.wantReply()
	})
}

// Who has its reply does not go on writing for others that came later.
func TestLinkWriterLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, first := p.begin("first")
		w.answer("first")
		first.wantReply()
		a, b := p.ask(t.Context(), "a"), p.ask(t.Context(), "b")
		w.wantCommands("a")
		w.answer("a") // while its caller writes b
		c := p.ask(t.Context(), "c")
		w.wantCommands("b")
		a.wantReply()
		w.wantCommands("c")
		w.answer("b", "c")
		b.wantReply()
		c.wantReply()
	})
}

// Who is not sent yet does not read: it may be needed to write.
func TestLinkReaderIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, first := p.begin("first")
		w.answer("first")
		first.wantReply()
		a, b := p.ask(t.Context(), "a"), p.ask(t.Context(), "b") // a is being written
		p.client.mu.Lock()
		if l := p.client.links[0]; !l.writing || l.reading {
			t.Errorf("writing %v, reading %v", l.writing, l.reading)
		}
		p.client.mu.Unlock()
		w.wantCommands("a", "b")
		w.answer("a", "b")
		a.wantReply()
		b.wantReply()
	})
}

// A second connection is made while the first is stuck, and no longer.
func TestLinkIsStuck(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, first := p.begin("first")
		time.Sleep(7 * s) // an eighth of a minute is more
		a := p.ask(t.Context(), "a")
		w.wantCommands("a")
		time.Sleep(s)
		b := p.ask(t.Context(), "b")
		other := p.accept()
		other.wantCommands("b")
		other.answer("b")
		b.wantReply()
		w.answer("first", "a")
		first.wantReply()
		a.wantReply()
		c := p.ask(t.Context(), "c")
		w.wantCommands("c")
		w.answer("c")
		c.wantReply()
		p.wantNoConnection()
	})
}

// There are no more than two, even if both are stuck.
func TestLinksAreFew(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, first := p.begin("first")
		time.Sleep(8 * s)
		other, second := p.begin("second")
		time.Sleep(8 * s)
		third := p.ask(t.Context(), "third")
		other.wantCommands("third")
		p.wantNoConnection()
		w.answer("first")
		other.answer("second", "third")
		for _, a := range []*asked{first, second, third} {
			a.wantReply()
		}
	})
}

// A connection that breaks: the callers with a reply have it, and the others learn that their
// commands may have been done.
func TestLinkBreaks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, a := p.begin("a")
		b, c := p.ask(t.Context(), "b"), p.ask(t.Context(), "c")
		w.wantCommands("b", "c")
		w.answer("a")
		w.say("$1\r\nb") // half of it
		w.Close()
		a.wantReply()
		b.wantBroken()
		c.wantBroken()
		w, d := p.begin("d")
		w.answer("d")
		d.wantReply()
	})
}

// It breaks while commands are sent. Those behind were certainly not sent, and go to the next
// connection, without their callers noticing.
func TestLinkBreaksWhileSending(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
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
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
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

// A caller that writes for others when the connection breaks goes on with its own command on the
// next connection, even if that is there already, and nobody else uses it.
func TestLinkWriterChangesConnections(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		written := make(chan struct{})
		p.pool.Dial = func() (redis.Conn, error) { return redis.NewConn(slow{written}, 0, 0), nil }
		p.client.mu.Lock() // until both are there
		p.client.links = append(p.client.links, newLink(p.client, time.Now()))
		gone := &call{commands: []Command{{"ECHO", strings.Repeat("x", 20_000)}}, deadline: time.Now().Add(time.Minute)}
		p.client.enqueue(gone, time.Now()) // its caller has not come to work yet
		p.client.mu.Unlock()
		b := p.ask(t.Context(), "b") // writes gone's command
		p.pool.Dial = p.dial
		p.client.Reset()
		w, c := p.begin("c")
		w.answer("c")
		c.wantReply()
		close(written)
		w.wantCommands("b")
		w.answer("b")
		b.wantReply()
		b.wantTook(0)
	})
}

// What Redis says about one command is not the others' business.
func TestLinkRefusal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, a := p.begin("a")
		b, c := p.ask(t.Context(), "b"), p.ask(t.Context(), "c")
		w.wantCommands("b", "c")
		w.answer("a")
		w.say("-OOM no memory left\r\n")
		w.answer("c")
		a.wantReply()
		<-b.done
		if refusal, ok := b.replies[0].(error); !ok || refusal.Error() != "OOM no memory left" || b.err != nil {
			t.Errorf("%v, %v", b.replies, b.err)
		}
		c.wantReply()
	})
}

// Redigo panics where a reply is absurd. That breaks the connection, not the process.
func TestLinkPanics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, a := p.begin("a")
		b := p.ask(t.Context(), "b")
		w.wantCommands("b")
		w.say("$9223372036854775807\r\n")
		a.wantBroken()
		b.wantBroken()
	})
}

// A reply before the command has been sent belongs to another. The connection is no good, and
// the command goes nowhere.
func TestLinkReplyComesTooSoon(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, first := p.begin("first")
		a, large := p.ask(t.Context(), "a"), p.ask(t.Context(), strings.Repeat("x", 20_000))
		w.wantCommands("a") // and the large one is being written
		w.answer("first", "a", "a")
		first.wantReply()
		a.wantReply()
		large.wantBroken()
		if rest, err := io.ReadAll(w.r); len(rest) > 20_000 || err != nil {
			t.Errorf("%d bytes of the command, %v", len(rest), err)
		}
	})
}

// A command without a name is its caller's mistake, which costs the connection.
func TestLinkBadCommand(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		a := p.do(t.Context(), "a", Command{})
		p.accept()
		a.wantBroken()
		w, b := p.begin("b")
		w.answer("b")
		b.wantReply()
	})
}

// After a failover the open connection leads to a replica. Its replies are still replies, but
// the next exchange goes to whoever is master now.
func TestLinkIsDemoted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
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
		last := p.ask(t.Context(), "last")
		other.wantCommands("last")
		other.answer("last")
		last.wantReply()
		w.wantEnd()
	})
}

// A crowd learns one after another that the server was demoted. The connection that the first of
// them has led to is kept.
func TestLinkIsDemotedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const readOnly = "-READONLY You can't write against a read only replica.\r\n"
		p := newPuppet(t)
		w, a := p.begin("a")
		b := p.ask(t.Context(), "b")
		w.wantCommands("b")
		w.say(readOnly)
		<-a.done
		other, c := p.begin("c")
		w.say(readOnly)
		<-b.done
		d := p.ask(t.Context(), "d")
		p.wantNoConnection()
		other.wantCommands("d")
		other.answer("c", "d")
		c.wantReply()
		d.wantReply()
	})
}

// A connection that was given up breaks in the end. That says nothing about those made since.
func TestLinkBreaksAfterItWasGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, a := p.begin("a")
		b := p.ask(t.Context(), "b")
		w.wantCommands("b")
		w.say("-READONLY You can't write against a read only replica.\r\n")
		<-a.done
		other, c := p.begin("c")
		w.Close()
		b.wantBroken()
		d := p.ask(t.Context(), "d")
		p.wantNoConnection()
		other.wantCommands("d")
		other.answer("c", "d")
		c.wantReply()
		d.wantReply()
	})
}

// A stray reply has come, says the layer above: nothing on this connection can be trusted.
func TestReset(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t)
		w, a := p.begin("a")
		b := p.ask(t.Context(), "b")
		w.wantCommands("b")
		p.client.Reset()
		a.wantBroken()
		b.wantBroken()
		w.wantEnd()
		p.client.Reset() // of nothing
		w, c := p.begin("c")
		w.answer("c")
		c.wantReply()
	})
}

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
		late.wantError(errClosed, false)
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

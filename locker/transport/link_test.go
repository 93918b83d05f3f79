package transport

import (
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// Nothing waits for the replies of others before it is sent, and each gets its own.
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

// What comes while somebody writes is sent together, in the order in which it came.
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

// The commands of an exchange are one write, and have a reply each.
func TestLinkSendsSeveralCommands(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
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

// Somebody reads while somebody writes: a proxy may stop reading until its replies are read.
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

// Who has its reply does not go on writing for others that came later.
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

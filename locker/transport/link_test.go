package transport

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

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

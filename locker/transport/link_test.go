package transport

import (
	"strings"
	"testing"
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

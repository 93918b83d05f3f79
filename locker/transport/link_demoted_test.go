package transport

import (
	"testing"
)

const readOnly = "-READONLY You can't write against a read only replica.\r\n"

// After a failover the open connection leads to a replica. Its replies are still replies, but
// the next exchange goes to whoever is master now.
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

// A crowd learns one after another that the server was demoted, or that the connection breaks in the
// end. That says nothing about the connection that the first of them has led to: it is kept.
func TestLinkIsDemotedOnce(t *testing.T) {
	for name, end := range map[string]func(w *wire, b *asked){
		"demoted again": func(w *wire, b *asked) { w.say(readOnly); <-b.done },
		"breaks":        func(w *wire, b *asked) { w.Close(); b.wantBroken() },
	} {
		t.Run(name, func(t *testing.T) {
			withPuppet(t, func(t *testing.T, p *puppet) {
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
		})
	}
}

// A stray reply has come, says the layer above: nothing on this connection can be trusted.
func TestReset(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, a := p.begin("a")
		b := p.ask(t.Context(), "b")
		w.wantCommands("b")
		p.client.Reset()
		a.wantBroken()
		b.wantBroken()
		w.wantEnd()
		p.client.Reset() // of nothing
		p.wantServed("c")
	})
}

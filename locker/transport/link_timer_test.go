package transport

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A second connection is made while the first is stuck, and serves new calls. There are no more than two, even if
// both are stuck.
func TestLinkIsStuck(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, first := p.begin("first")
		redistest.Elapse(7 * s) // less than an eighth of a minute
		a := p.ask(t.Context(), "a")
		w.wantCommands("a")
		other := p.acceptProbe()
		b := p.ask(t.Context(), "b")
		other.wantCommands("b")
		redistest.Elapse(8 * s)
		c := p.ask(t.Context(), "c")
		other.wantCommands("c")
		p.wantNoConnection()
		other.answer("PING", "b", "c")
		w.answer("first", "a")
		wantReplies(b, c, first, a)
		p.wantServedOn(w, "d")
		p.wantNoConnection()
	})
}

// A reply on another connection reveals that a connection has died silently. All calls on the dead one fail after
// a quarter of the timeout, and may be repeated.
func TestLinkIsDead(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, first := p.begin("first")
		redistest.Elapse(5 * s)
		a := p.ask(t.Context(), "a")
		w.wantCommands("a")
		other := p.acceptProbe()
		other.answer("PING")
		first.wantBroken()
		first.wantTook(15 * s)
		a.wantBroken()
		w.wantEnd()
		p.wantServedOn(other, "b") // the other connection stays
		p.wantNoConnection()
	})
}

// That a link is dead is only a guess, since a large reply may take as long. So the calls that are repeated then
// have the rest of their time.
func TestLinkIsDeadOnceInATimeout(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		_, first := p.begin("first")
		other := p.acceptProbe()
		other.answer("PING")
		first.wantBroken()
		again := p.ask(t.Context(), "first")
		other.wantCommands("first")
		p.acceptProbe().answer("PING")
		redistest.Elapse(44 * s)
		again.wantWaiting()
		other.answer("first")
		again.wantReply()
	})
}

// Calls that the dead link has not sent go to the other connection by themselves.
func TestLinkIsDeadBeforeItIsDialled(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		p.pool.Dial = nil
		var dials atomic.Int64
		p.pool.DialContext = func(ctx context.Context) (redis.Conn, error) {
			if dials.Add(1) > 1 {
				return p.dial()
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		first := p.ask(t.Context(), "first")
		other := p.acceptProbe()
		other.answer("PING")
		other.serve(first)
		first.wantTook(15 * s)
	})
}

// A link is not dead while replies arrive, even late ones: they may be large, or many.
func TestLinkIsSlow(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, first := p.begin("first")
		all := p.crowd("a", "b", "c")
		w.wantCommands("a", "b", "c")
		other := p.acceptProbe()
		for _, name := range []string{"first", "a", "b"} {
			other.answer("PING")
			redistest.Elapse(7 * s)
			w.answer(name)
			other.wantCommands("PING") // the probe for the next reply
		}
		redistest.Elapse(25 * s) // nothing overtakes the last reply
		w.answer("c")
		first.wantReply()
		wantReplies(all...)
	})
}

// A reply to a command from before the probe proves nothing.
func TestLinkIsNotOvertaken(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, a := p.begin("a")
		other := p.acceptProbe()
		b := p.ask(t.Context(), "b")
		other.wantCommands("b")
		w.answer("a")
		a.wantReply()
		c := p.ask(t.Context(), "c") // on the first link again
		w.wantCommands("c")
		redistest.Elapse(8 * s)
		other.answer("PING", "b")
		b.wantReply()
		c.wantError(os.ErrDeadlineExceeded, true)
		c.wantTook(time.Minute)
	})
}

package transport

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Redis hangs. The one that came first has waited for its whole time. The others have time left,
// and may try again on another connection. No reply of the old one gets to anybody.
func TestTimeout(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, a := p.begin("a")
		redistest.Elapse(s)
		b, c := p.ask(t.Context(), "b"), p.ask(t.Context(), "c")
		w.wantCommands("b", "c")
		a.wantError(os.ErrDeadlineExceeded, true)
		a.wantTook(time.Minute)
		b.wantBroken()
		c.wantBroken()
		b.wantTook(59 * s)
		w.wantEnd()
		w.answer("a", "b", "c") // late
		p.acceptProbe().wantEnd()
		p.wantServed("d")
	})
}

// A server that is silent may be there no more, while its address leads to another already. That
// costs one timeout, not one for each connection.
func TestTimeoutGivesUpAllConnections(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		w, a := p.begin("a")
		other := p.acceptProbe()
		b := p.ask(t.Context(), "b")
		other.wantCommands("b")
		a.wantError(os.ErrDeadlineExceeded, true)
		w.wantEnd()
		other.wantEnd()
		b.wantError(os.ErrDeadlineExceeded, true)
	})
}

// Redis does not even read, for ever. All end in time, and the next exchange finds another
// connection.
func TestWriteHangs(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		a := p.ask(t.Context(), "a")
		soon, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		hurried := p.ask(soon, "hurried")
		redistest.Elapse(s)
		b := p.ask(t.Context(), "b")
		hurried.wantError(context.DeadlineExceeded, false)
		a.wantError(os.ErrDeadlineExceeded, true)
		a.wantTook(time.Minute)
		p.accept()
		p.accept()
		w := p.accept() // b goes to another
		w.wantCommands("b")
		w.answer("b")
		b.wantReply()
		b.wantTook(59 * s)
	})
}

// A caller that writes for another when that hangs has no more time for it than for its own
// exchange, whose reply it has.
func TestWriteHangsForTheNext(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		a := p.ask(t.Context(), "a")
		w := p.accept()
		redistest.Elapse(5 * s)
		b := p.ask(t.Context(), strings.Repeat("x", 20_000))
		w.wantCommands("a")
		w.answer("a") // while its caller writes the large one
		a.wantReply()
		a.wantTook(time.Minute)
		b.wantBroken()
		b.wantTook(55 * s)
	})
}

// The same if the one whose write hangs has little time.
func TestWriteHangsForOneWithLittleTime(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		soon, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		hurried := p.ask(soon, "hurried")
		p.accept()
		hurried.wantError(context.DeadlineExceeded, true)
		hurried.wantTook(s)
	})
}

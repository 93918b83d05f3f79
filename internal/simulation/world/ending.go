package world

import (
	"context"
	"fmt"
	"strings"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/internal/simulation/plan"
)

func userName(number int) string { return fmt.Sprintf("user%d", number) }

// ends ends sessions without a request.
func (w *World) ends(r plan.Request) {
	w.mu.Lock()
	p, id := w.present[r.Process], w.visitors[r.Visitor].latest
	if r.Action == plan.EndAllBut {
		id = w.visitors[r.Visitor].first()
	}
	nothing := p.dead || r.Action == plan.End && id == ""
	w.mu.Unlock()
	if nothing {
		return
	}
	e := &history.Ending{Number: r.Number}
	switch r.Action {
	case plan.End:
		e.ID = id
	case plan.EndAllBut:
		e.Spared = id
		fallthrough
	default:
		e.User = userName(r.User)
	}
	p.end(context.Background(), e)
}

// endOfAnother is the difference between the number of an Ending and the number of the request that has
// asked for it.
const endOfAnother = 20_000_000

// endOthers ends all other sessions of the user whose session the handler has, and sometimes this
// session, too.
func (c *call) endOthers(ctx context.Context) {
	user := c.session.User()
	if user == "" {
		return
	}
	e := &history.Ending{Number: c.Number + endOfAnother, User: user}
	if !endsOwn(c.Request) {
		e.Spared = c.session.ID()
	}
	c.process.end(ctx, e)
}

func endsOwn(r plan.Request) bool { return r.Action == plan.EndOthers && r.Number%4 == 0 }

// end performs an ending, and records its result.
func (p *process) end(ctx context.Context, e *history.Ending) {
	w := p.world
	w.mu.Lock()
	e.Process, e.Life = p.number, p.life
	if w.endings[e.Number] != nil {
		e.Number += second // the handler runs again
	}
	w.endings[e.Number] = e
	e.Began = w.now()
	w.noteEnding(p, e, "is to end: ")
	w.mu.Unlock()

	var err error
	if e.ID != "" {
		err = p.sessions.End(ctx, e.ID)
	} else if e.Spared != "" {
		_, err = p.sessions.EndAll(ctx, e.User, e.Spared)
	} else {
		_, err = p.sessions.EndAll(ctx, e.User)
	}

	_, limited := ctx.Deadline()
	w.mu.Lock()
	defer w.mu.Unlock()
	e.End, e.Cause, e.Why = w.now(), causeOf(err), why(err)
	switch {
	case p.dead && p.died <= e.End:
		e.Cause = history.Crashed
	case e.Cause == history.None, e.Cause == history.Gone:
		e.Outcome = history.Answered
	case ctx.Err() != nil, limited && is(err, context.DeadlineExceeded): // this may be noticed a little before
		e.Cause = history.Cancelled
	}
	w.noteEnding(p, e, []string{"may have ended: ", "has ended: "}[e.Outcome])
}

func (w *World) noteEnding(p *process, e *history.Ending, what string) {
	text := e.ID + e.User
	if e.Spared != "" {
		text += " but " + e.Spared
	}
	w.trace.add(event{at: w.now(), what: what, process: p.number, request: e.Number, text: text + e.Why})
}

// recordKey is the key of a session's record. All keys of the session begin with it.
func recordKey(id string) string {
	if tag, rest, ofUser := strings.Cut(id, "."); ofUser {
		return "latchkey:{" + tag + "}:" + rest
	}
	return "latchkey:{" + id + "}"
}

// mentions reports whether an argument of a command refers to a session or to its user.
func mentions(arg, id string) bool {
	tag, _, _ := strings.Cut(id, ".")
	return strings.Contains(arg, "{"+tag+"}") || strings.Contains(arg, id)
}

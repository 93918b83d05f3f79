package world

import (
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/internal/simulation/plan"
	"github.com/a2139e8d/latchkey/internal/simulation/told"
	"github.com/a2139e8d/latchkey/middleware"
)

// second is the difference of the numbers of two requests that are really one. If a handler reopens its
// session or runs a second time, its request counts as two, which are judged like any others.
const second = told.Second

// next makes everything from now on count as another request. The first request ended at over.
func (c *call) next(over time.Duration, what string) (first *history.Request) {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	first = c.seen
	first.End, first.Done, first.Answered = over, over, over
	c.seen = &history.Request{Number: first.Number + second, Process: first.Process, Life: first.Life,
		Title: first.Title + ", " + what, Member: first.Member, Guest: first.Guest, Cookie: first.Cookie, Began: first.Began, Asked: w.now(), Exclusive: true,
		Leaves: first.Leaves, Faulty: first.Faulty, Anew: first.Anew, Navigates: first.Navigates}
	w.seen[c.seen.Number] = c.seen
	c.durable, c.panics = 0, false
	w.noteLocked(c, what, first.Cookie, nil)
	return first
}

// again records whether the handler has run before. No request may ever see the changes of that first run. But
// the network may have made a copy of its command, which may be executed.
func (c *call) again() {
	if c.seen.Open == 0 {
		return
	}
	first := c.next(c.world.now(), "runs again")
	first.Outcome, first.Cause = history.Refused, history.Conflict
	if c.world.plan.Any(plan.DoubleCommands) {
		first.Outcome = history.Unknown
	}
	c.seen.Asked, c.seen.Again = first.Seal, true
}

// reopen commits the session, works, and opens it again. It reports whether the handler goes on.
func (c *call) reopen(w http.ResponseWriter, r *http.Request) bool {
	ctx := r.Context()
	c.sealing()
	if c.failure = c.session.Commit(ctx); c.failure != nil {
		return false // the response is the error
	}
	over := c.world.now()
	c.work(ctx, c.After)
	first := c.next(over, "reopens")
	first.Outcome, first.Durable = history.Answered, over
	if c.diedBy(over) {
		first.Outcome, first.Cause = history.Unknown, history.Crashed
	}
	if c.failure = c.session.Reopen(ctx); c.failure != nil {
		w.WriteHeader(middleware.Status(c.failure))
		return false
	}
	c.look()
	return true
}

// diedBy reports whether the process had crashed by a given time.
func (c *call) diedBy(when time.Duration) bool {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	return c.process.dead && c.process.died <= when
}

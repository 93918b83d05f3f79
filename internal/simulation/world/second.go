package world

import (
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/internal/simulation/plan"
	"github.com/a2139e8d/latchkey/middleware"
)

// A request that has its session twice, since its handler reopens that or runs a second time, counts
// as two, which are judged like any others. The number of the second one is larger by this.
const second = 10_000_000

// next has what comes from now on count as another request. The first one was over at a time.
func (c *call) next(over time.Duration, what string) (first *history.Request) {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	first = c.seen
	first.End, first.Done = over, over
	c.seen = &history.Request{Number: first.Number + second, Process: first.Process, Life: first.Life,
		Title: first.Title + ", " + what, Cookie: first.Cookie, Began: first.Began, Asked: w.now(), Exclusive: true,
		Leaves: first.Leaves, Faulty: first.Faulty, Anew: first.Anew}
	w.seen[c.seen.Number] = c.seen
	c.durable, c.panics = 0, false
	w.noteLocked(c, what, first.Cookie, nil)
	return first
}

// again notes it if the handler has run before. Nothing of that run must ever be seen; but a copy
// that the network has made of its command may be done.
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
		return false // the answer is the error
	}
	over := c.world.now()
	c.work(ctx, c.After)
	first := c.next(over, "reopens")
	first.Outcome = history.Answered
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

// diedBy reports whether the process had crashed by some time.
func (c *call) diedBy(when time.Duration) bool {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	return c.process.dead && c.process.died <= when
}

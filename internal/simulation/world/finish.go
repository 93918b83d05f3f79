package world

import (
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/internal/simulation/plan"
)

// finish runs after the last request of a plan: all faults end, each session is read and written once
// more, and then nothing must be left behind.
func (w *World) finish() {
	elapse(w.plan.Healed() + time.Millisecond - w.now())
	w.mu.Lock()
	w.heal()
	w.mu.Unlock()
	w.each(plan.Look, plan.ReadOnly, w.plan.Strict()) // messages may still be late
	if w.plan.Strict() {
		elapse(5*time.Second + w.plan.Options.Lease)
	} else {
		w.linger()
		// A place stays in a queue for a minute at most.
		elapse(w.plan.Options.Lease + 62*time.Second)
	}
	// Errors have no number. So an error that came twice is taken for the reply to the next command on
	// the connection, and that request is refused, however late.
	must := !slices.ContainsFunc(w.plan.Faults, func(f plan.Fault) bool { return f.Kind == plan.DoubleReplies })
	w.each(plan.Append, plan.Exclusive, must)
	w.each(plan.Look, plan.ReadOnly, must)
	w.recall()
	elapse(w.plan.Lateness() + unvisited)
	w.each(plan.Update, plan.Exclusive, must)
	w.mu.Lock()
	w.leftovers()
	w.mu.Unlock()
	elapse(time.Minute + w.plan.Options.Timeout) // by then an idle connection is closed
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		if !c.closed {
			w.wrong = append(w.wrong, fmt.Sprintf("process %d has connection c%d open, a minute after its last request", c.process.number, c.number))
		}
	}
}

// unvisited is for how long, at least, no session has been used before finish looks at the data that is left.
const unvisited = time.Second

// heal ends effects that outlast their fault: keep-alive probes discover connections that are silent for
// good.
func (w *World) heal() {
	for _, c := range w.conns {
		if c.silent {
			c.crack(reset)
		}
	}
}

// elapse lets time of the bubble pass.
func elapse(d time.Duration) { time.Sleep(d) }

// finals is the first number of these requests. No request of a plan has such a number.
const finals = 1_000_000

// each sends a request for each visitor, one after another. must says whether each must succeed.
func (w *World) each(what plan.Action, mode plan.Mode, must bool) {
	for v := range w.plan.Visitors {
		number := finals + len(w.seen)
		w.requests.Add(1)
		w.request(plan.Request{Number: number, Visitor: v, Process: number % len(w.present), Action: what, Mode: mode, User: number % 2})
		if r := w.seen[number]; must && r != nil && r.Status != 200 && r.Cause != history.Gone {
			w.wrong = append(w.wrong, fmt.Sprintf("after all faults, #%d (%s) was answered with %d: %s", number, what, r.Status, r.Cause))
		}
		elapse(17 * time.Microsecond)
	}
}

// linger waits as long as messages may be late. If that is long, the visitors log in meanwhile.
func (w *World) linger() {
	const parts = 4
	for range parts {
		elapse(w.plan.Lateness() / parts)
		if w.plan.Lateness() > time.Minute {
			w.each(plan.Login, plan.Exclusive, false)
			w.recall()
		}
	}
}

// most is the largest number of ended sessions that recall tries.
const most = 50

// recall checks whether a session is alive whose cookie no browser has any more. If messages may be so late that
// a session could come back, it tries all sessions.
func (w *World) recall() {
	ids := w.dropped
	if w.plan.Lateness() > time.Minute {
		ids = w.ids
	}
	step := 1 + len(ids)/most
	for i := 0; i < len(ids); i += step {
		number := finals + len(w.seen)
		w.visitors = append(w.visitors[:w.plan.Visitors], visitor{})
		w.visitors[w.plan.Visitors].set(w.cookies[ids[i]])
		w.requests.Add(1)
		w.request(plan.Request{Number: number, Visitor: w.plan.Visitors, Process: number % len(w.present), Action: plan.Look, Mode: plan.ReadOnly})
		elapse(17 * time.Microsecond)
	}
}

// leftovers looks for keys that should no longer be in Redis.
func (w *World) leftovers() {
	for _, key := range w.redis.Keys(time.Now()) {
		left, _ := w.redis.Left(time.Now(), key)
		switch {
		case strings.HasSuffix(key, ".lock"), strings.HasSuffix(key, ".queue"):
			value, _ := w.redis.Get(time.Now(), key)
			w.wrong = append(w.wrong, fmt.Sprintf("%s is left in Redis, for %v: %s", key, left, value))
		case strings.Contains(key, ".new."):
			w.wrong = append(w.wrong, fmt.Sprintf("%s is still staged a minute later, for %v", key, left))
		case strings.HasSuffix(key, ".list"), strings.HasSuffix(key, ".user"):
			if left < 0 || left > max(time.Hour, w.plan.Options.Lifetime+10*time.Minute) {
				w.wrong = append(w.wrong, fmt.Sprintf("%s lives for %v, longer than any session, and than an hour", key, left))
			}
		case left < 0:
			w.wrong = append(w.wrong, fmt.Sprintf("%s has no time to live", key))
		case left > w.plan.Options.TTL-unvisited && left > time.Minute:
			w.wrong = append(w.wrong, fmt.Sprintf("%s lives for %v, longer than the idle timeout, although nobody has used it for %v", key, left, unvisited))
		}
	}
}

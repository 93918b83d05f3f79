package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/internal/simulation/plan"
)

// strike begins a fault. Faults that hit messages or calls take effect when one is sent or made. The caller holds
// mu.
func (w *World) strike(f plan.Fault) {
	w.tell(f, "")
	r := w.redis
	switch f.Kind {
	case plan.HalfOpen:
		for _, c := range w.hit(f) {
			c.silent = true
		}
	case plan.Unsubscribe:
		for _, c := range w.hit(f) {
			if c.subscribed {
				c.hangUp()
			}
		}
	case plan.Crash:
		w.crash(f)
	case plan.Pause:
		w.paused = max(w.paused, f.Until())
	case plan.RestartKeep, plan.RestartLose:
		w.restart(f)
	case plan.DropLocks:
		w.drop(".lock")
	case plan.DropQueues:
		w.drop(".queue")
	case plan.DropRecord:
		if id := w.visitors[f.Visitor].latest; id != "" {
			r.Delete(recordKey(id))
			w.losses = append(w.losses, history.Loss{ID: id, At: w.now()})
		}
	case plan.DropMarks:
		w.dropOfUsers(".user")
	case plan.DropLists:
		w.dropOfUsers(".list")
	case plan.FlushScripts:
		r.Connect(nil).Do(time.Now(), "SCRIPT", "FLUSH")
	case plan.Full, plan.Loading, plan.Replica, plan.Busy, plan.NoPerm, plan.NoChannels:
		w.refuse()
		fallthrough
	case plan.Cut, plan.CutLate, plan.Slow, plan.DoubleCommands, plan.DoubleReplies, plan.Swap, plan.Panics, plan.Mute, plan.Partition:
		w.at(f.Until(), func() { w.refuse(); w.tell(f, "not any more: ") })
	default:
		panic("a fault without effect: " + f.Kind)
	}
}

// refuse sets what Redis refuses now.
func (w *World) refuse() {
	r, now := w.redis, w.now()
	is := func(kind plan.Kind) (found *plan.Fault) {
		for i, f := range w.plan.Faults {
			if f.Kind == kind && f.At <= now && now < f.Until() {
				found = &w.plan.Faults[i]
			}
		}
		return found
	}
	r.Full = is(plan.Full) != nil
	r.Loading = is(plan.Loading) != nil
	r.Replica = is(plan.Replica) != nil
	r.Busy = is(plan.Busy) != nil
	r.NoChannels = is(plan.NoChannels) != nil
	r.NoPerm = nil
	if f := is(plan.NoPerm); f != nil {
		r.NoPerm = forbidden[f.Visitor%len(forbidden)]
	}
}

// forbidden are the commands that a user may not run while NoPerm lasts.
var forbidden = []map[string]bool{
	{"evalsha": true, "eval": true},
	{"publish": true},
	{"subscribe": true},
	{"pttl": true},
	{"set": true},
	{"del": true},
}

// hit returns the connections that a fault hits.
func (w *World) hit(f plan.Fault) (hit []*conn) {
	for _, c := range w.conns {
		if c.server != nil && (f.Process == plan.Everyone || f.Process == c.process.number) {
			hit = append(hit, c)
		}
	}
	return hit
}

// crash crashes a process, which starts again later.
func (w *World) crash(f plan.Fault) {
	p := w.present[f.Process]
	if p.dead {
		return
	}
	p.crash()
	w.at(f.Until(), func() {
		w.present[f.Process] = w.start(f.Process, p.life+1)
		w.tell(f, "and is there again: ")
	})
}

// restart restarts Redis: its connections, and everything under way on them, are lost.
func (w *World) restart(f plan.Fault) {
	for _, c := range w.conns {
		c.severed = true
		c.hangUp()
	}
	// A client does not notice the loss of a connection that had fallen silent before.
	w.conns = slices.DeleteFunc(w.conns, func(c *conn) bool { return !c.silent })
	w.down = true
	w.redis.Restart(f.Kind == plan.RestartKeep)
	if f.Kind == plan.RestartLose {
		w.losses = append(w.losses, history.Loss{At: w.now()})
	}
	w.at(f.Until(), func() {
		w.down = false
		w.tell(f, "it is there again: ")
	})
}

// drop deletes all keys of one kind.
func (w *World) drop(suffix string) {
	for _, key := range w.redis.Keys(time.Now()) {
		if strings.HasSuffix(key, suffix) {
			w.redis.Delete(key)
		}
	}
}

// dropOfUsers deletes the marks of users, or their lists.
func (w *World) dropOfUsers(suffix string) {
	w.drop(suffix)
	w.losses = append(w.losses, history.Loss{Users: true, At: w.now()})
}

// tell adds a fault to the trace.
func (w *World) tell(f plan.Fault, text string) {
	if f.For > 0 && text == "" {
		text = fmt.Sprintf("for %v: ", f.For)
	}
	what := "*** " + text + string(f.Kind)
	if f.Process != plan.Everyone {
		what += fmt.Sprintf(" (P%d)", f.Process)
	}
	w.trace.add(event{at: w.now(), what: what, process: -1})
}

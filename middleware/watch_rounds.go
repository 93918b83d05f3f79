package middleware

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// # Rounds
//
// A timer begins a round each quarter of a second, as long as there are requests. A round asks for the requests that
// have been there for at least a second and were not asked for within the last second. So a request that has just come
// is asked for after one and a quarter seconds at most. With one round trip to ask, and one more to make sure, a context
// ends within two seconds of its session's end, if Redis replies within three eighths of a second.
//
// # Sessions without an answer
//
// A node of a cluster may hang while the others reply. So a session whose answer does not come must not hold up the
// others: no round waits for the last answers, and no round asks for a session whose last answer is still to come. A
// round begins with watchAtOnce goroutines, each of which asks for one session after the other. If all of them wait,
// and none has got an answer for watchPatience, four times as many ask. So after a moment there are more of them than
// sessions on the node that hangs. There are never more than watchMost, even if all of Redis hangs: then the round goes
// on when the answers of some have come, which takes at most the store's Timeout.
//
// # The end
//
// The watch has no goroutine while nobody is watched. A round runs in the timer's, ends by itself, and ends early if
// the store is closed. After that there is no other. A goroutine that asks ends with its last answer.
//
// # What a round may do
//
// An answer takes time, and the request may have left meanwhile, or its own commit may have ended the session. So an
// answer counts only if the request is still there with the ID that was asked for. Because a request steps out before
// its own command is sent, such an answer is about what others have done.
//
// Only what a master has said ends a context: see Engine.Alive. If Redis does not reply, or refuses, all goes on. If it
// replies to nobody for longSilence, that is logged.

const (
	watchEvery    = 250 * time.Millisecond // from one round to the next
	watchPeriod   = 4                      // rounds in a second
	watchAtOnce   = 64                     // so many requests are asked for at once: their commands share a connection
	watchMost     = 4096                   // and so many if answers do not come
	watchPatience = 50 * time.Millisecond
)

// round asks for the requests that are due.
func (w *watch) round() {
	began := time.Now()
	defer w.goOn(began) // also if the client has ended this goroutine
	w.ask(w.due(w.rounds.Add(1)))
}

// goOn sets the timer for the next round, watchEvery after began. If nobody is watched, or the store was closed,
// there is no next round.
func (w *watch) goOn(began time.Time) {
	if w.store.Context().Err() != nil {
		return // on stays true, so nothing sets the timer again
	}
	if w.isEmpty() {
		w.on.Store(false)
		// A request that has entered before this found on true. A request that enters from now on finds it false.
		if w.isEmpty() || !w.on.CompareAndSwap(false, true) {
			return
		}
	}
	w.timer.Reset(max(0, watchEvery-time.Since(began)))
}

func (w *watch) isEmpty() bool {
	for i := range w.shards {
		in := &w.shards[i]
		in.mu.Lock()
		n := len(in.entries)
		in.mu.Unlock()
		if n > 0 {
			return false
		}
	}
	return true
}

// all returns the entries of the requests that are watched now.
func (w *watch) all() (all []watchEntry) {
	for i := range w.shards {
		in := &w.shards[i]
		in.mu.Lock()
		all = append(all, in.entries...)
		in.mu.Unlock()
	}
	return all
}

// due returns the requests that are due in this round, and makes them due again in a second.
func (w *watch) due(round uint32) (all []watchEntry) {
	for i := range w.shards {
		in := &w.shards[i]
		in.mu.Lock()
		for j := range in.entries {
			e := &in.entries[j]
			if !e.isAside() && !e.asked && int32(round-e.due) >= 0 { // the numbers may have wrapped around
				e.due, e.asked = round+watchPeriod, true
				all = append(all, *e)
			}
		}
		in.mu.Unlock()
	}
	return all
}

// ask asks for all these requests. It returns when the last question is under way, or when the store is closed.
func (w *watch) ask(all []watchEntry) {
	if len(all) == 0 {
		return
	}
	a := &asking{watch: w, all: all, under: make(chan struct{})}
	a.start(watchAtOnce)
	tick := time.NewTicker(watchPatience)
	defer tick.Stop()
	for before := int64(0); ; {
		select {
		case <-a.under:
			return
		case <-w.store.Context().Done():
			return
		case <-tick.C:
		}
		now := a.taken.Load()
		if now == before { // nobody has got an answer
			a.start(max(3*a.started, watchAtOnce))
		}
		before = now
	}
}

// An asking is what the goroutines of one round share.
type asking struct {
	*watch
	all     []watchEntry
	taken   atomic.Int64  // how many of them
	under   chan struct{} // closed when the last one has been taken
	started int           // goroutines
}

// start starts more goroutines, as far as there may be more.
func (a *asking) start(more int) {
	more = min(more, len(a.all), watchMost-int(a.askers.Load()))
	for range more {
		a.askers.Add(1)
		go a.run()
	}
	a.started += max(more, 0)
}

// run asks for one request after the other.
func (a *asking) run() {
	defer a.askers.Add(-1) // also if the client has ended this goroutine
	last := int64(len(a.all))
	for i := a.taken.Add(1); i <= last; i = a.taken.Add(1) {
		if i == last {
			close(a.under)
		}
		a.askFor(a.all[i-1])
	}
}

// askFor ends the context of a request whose session has ended.
func (w *watch) askFor(e watchEntry) {
	defer w.answered(e)
	defer func() { // the application's own context may panic, if this one is derived from it
		if v := recover(); v != nil {
			defer func() { _ = recover() }() // of the Logger: a panic would end the process
			e.rq.log(slog.LevelError, "panic", "the context of a request has panicked when its session ended", slog.Any("panic", v))
		}
	}()
	begun := time.Now()
	now, err := w.store.Alive(w.store.Context(), e.id, w.terms)
	ended := errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrNotFound)
	if long := w.silence.note(err == nil || ended, begun); long > 0 {
		e.rq.sessions.logSilence(long, err)
	}
	counts := (ended || now != e.id) && w.follow(e, now)
	if counts && ended {
		e.rq.leaveEnded()
		e.rq.context.endContext(session.ErrEnded)
	}
}

// follow notes the ID that the session of e has now. It returns false if the answer does not count any more.
func (w *watch) follow(e watchEntry, now string) bool {
	in := &w.shards[e.rq.watched.shard]
	in.mu.Lock()
	defer in.mu.Unlock()
	there := in.still(e)
	if there == nil || there.isAside() {
		return false
	}
	there.id = now
	there.asked = false
	return true
}

// answered allows the next round to ask for e again.
func (w *watch) answered(e watchEntry) {
	in := &w.shards[e.rq.watched.shard]
	in.mu.Lock()
	defer in.mu.Unlock()
	if there := in.still(e); there != nil {
		there.asked = false
	}
}

// still returns the entry of e if it has not left and has the same ID, and otherwise nil. The caller holds mu.
func (in *watchShard) still(e watchEntry) *watchEntry {
	at := e.rq.watched.at
	if at <= 0 || in.entries[at-1].id != e.id {
		return nil
	}
	return &in.entries[at-1]
}

package middleware

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// # The watch
//
// A session may end while requests have it open: streams, websockets, slow work after Commit. Then the contexts of
// their handlers end, with session.ErrEnded as the cause. So the watch asks Redis once a second whether the sessions of
// such requests are alive. Each request counts, whatever its mode, and whether it holds its session or not.
//
// # When a request is watched
//
//   - It enters when its session is stored: when it has opened a session that is, or when its commit has begun one.
//     So a request without a session is never watched.
//   - It leaves when its handler has returned, or when its session has ended.
//   - It steps out while a commit gives its session another id, or ends it, and while its handler ends sessions by End,
//     EndAll or Update: what the request itself does must not end its own context. If the session goes on, the request
//     steps in again, with the id that the session has then.
//
// To enter and to leave costs no allocation and no command, since nearly all requests are over before the watch asks
// for them. Requests are in one of several shards, so that they rarely wait for each other.
//
// # Rounds
//
// A timer begins a round each quarter of a second, as long as there are requests. A round asks for the requests that
// have been there for at least a second and were not asked for within the last second. With one exchange to ask, and
// one more to make sure, a context ends within two seconds of its session's end, if Redis replies within half a second.
// If it does not, rounds take longer: the next one begins when all have been asked for.
//
// The watch has no goroutine while nobody is watched. A round runs in the timer's, ends by itself, and ends early if
// the store is closed. After that there is no other.
//
// # What a round may do
//
// An answer takes time, and the request may have left meanwhile, or its own commit may have ended the session. So an
// answer counts only if the request is still there with the id that was asked for. Because a request steps out before
// its own command is sent, such an answer is about what others have done.
//
// Only what a master has said ends a context: see Engine.Alive. If Redis does not reply, or refuses, all goes on.
//
// A shard's mutex is never held during a round trip, nor while a context ends, which may call code of the application.
// It is locked last: a request enters with request.mu held.
type watch struct {
	store  *records.Engine
	terms  records.Terms
	timer  *time.Timer   // begins the next round
	on     atomic.Bool   // the timer is set, or a round is under way. Only who has set it to true may set the timer
	rounds atomic.Uint32 // so far: the watch counts time in rounds, which costs a request less than a clock
	shards [watchShards]watchShard
}

type watchShard struct {
	mu      sync.Mutex // guards entries, and the place of each request that belongs to this shard
	entries []watched  // in no order
	_       [32]byte   // so that two shards do not share a cache line
}

// A watched is a request that is being watched.
type watched struct {
	rq  *request
	id  string // of its session as far as the watch knows: the session may have moved since the request has opened it
	due uint32 // the round that asks for it
	out bool   // it has stepped out
}

// A place is where a request is in the watch.
type place struct {
	shard uint8 // never changes; by the time of the request's arrival, which is as good as chance
	at    int32 // 1 + its index among the shard's entries; 0: it has not entered; left: it is not watched any more
}

const left = math.MinInt32

const (
	watchShards = 16
	watchEvery  = 250 * time.Millisecond // from one round to the next
	watchPeriod = 4                      // rounds in a second
	watchAtOnce = 64                     // so many requests are asked for at once
)

func newWatch(st *records.Engine, terms records.Terms) *watch {
	w := &watch{store: st, terms: terms}
	w.timer = time.AfterFunc(time.Hour, w.round)
	w.timer.Stop()
	return w
}

// watch makes the request enter, or step in again, with the id that its session has now, if that is stored. It does
// nothing if the handler has returned. It is called with request.mu held.
func (rq *request) watch() {
	if rq.origin != locked && rq.origin != readOnly && rq.origin != optimistic {
		return
	}
	w, id := rq.sessions.watch, rq.identity.knownID()
	due := w.rounds.Load() + watchPeriod + 1 // the first of these comes too soon
	in := &w.shards[rq.watched.shard]
	in.mu.Lock()
	switch at := rq.watched.at; {
	case at > 0:
		in.entries[at-1].id, in.entries[at-1].out = id, false
	case at == 0:
		in.entries = append(in.entries, watched{rq, id, due, false})
		rq.watched.at = int32(len(in.entries))
	}
	in.mu.Unlock()
	if !w.on.Load() && w.on.CompareAndSwap(false, true) {
		w.timer.Reset(watchEvery)
	}
}

// stepOut makes the watch pass the request over until it steps in again. It returns the id of its session, or "" if it
// has not entered.
func (rq *request) stepOut() (id string) { return rq.step(true) }

// stepIn undoes stepOut: the session goes on as it was. If its id has changed, call watch.
func (rq *request) stepIn() { rq.step(false) }

func (rq *request) step(out bool) (id string) {
	in := &rq.sessions.watch.shards[rq.watched.shard]
	in.mu.Lock()
	defer in.mu.Unlock()
	if at := rq.watched.at; at > 0 {
		e := &in.entries[at-1]
		e.out, id = out, e.id
	}
	return id
}

// leaveWatch makes the request leave for good, since its handler has returned or its session has ended.
func (rq *request) leaveWatch() {
	in := &rq.sessions.watch.shards[rq.watched.shard]
	in.mu.Lock()
	defer in.mu.Unlock()
	if at := rq.watched.at; at > 0 { // the last one takes its place
		last := len(in.entries) - 1
		in.entries[at-1] = in.entries[last]
		in.entries[at-1].rq.watched.at = at
		in.entries[last] = watched{}
		in.entries = in.entries[:last]
	}
	rq.watched.at = left
}

// hasLeft reports whether the request has left.
func (rq *request) hasLeft() bool {
	in := &rq.sessions.watch.shards[rq.watched.shard]
	in.mu.Lock()
	defer in.mu.Unlock()
	return rq.watched.at == left
}

// round asks for the requests that are due.
func (w *watch) round() {
	began := time.Now()
	defer w.goOn(began) // also if the client has ended this goroutine
	w.ask(w.due(w.rounds.Add(1)))
}

// goOn sets the timer for the round after the one that has begun then. If nobody is watched, or the store was closed,
// there is none.
func (w *watch) goOn(began time.Time) {
	if w.store.Context().Err() != nil {
		return // on stays true, so nothing sets the timer again
	}
	if w.isEmpty() {
		w.on.Store(false)
		// A request that has entered before that found it true. One that enters from now on finds it false.
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

// due returns those who are due in this round, and makes them due again in a second.
func (w *watch) due(round uint32) (all []watched) {
	for i := range w.shards {
		in := &w.shards[i]
		in.mu.Lock()
		for j := range in.entries {
			e := &in.entries[j]
			if !e.out && int32(round-e.due) >= 0 { // the numbers may have wrapped around
				e.due = round + watchPeriod
				all = append(all, *e)
			}
		}
		in.mu.Unlock()
	}
	return all
}

// ask asks for all of them, some at once: their commands share a connection.
func (w *watch) ask(all []watched) {
	var taken atomic.Int64
	var asking sync.WaitGroup
	for range min(watchAtOnce, len(all)) {
		asking.Go(func() {
			for i := taken.Add(1); i <= int64(len(all)); i = taken.Add(1) {
				w.askFor(all[i-1])
			}
		})
	}
	asking.Wait()
}

// askFor ends the context of a request whose session has ended.
func (w *watch) askFor(e watched) {
	defer func() { // the context may be derived from one of the application's
		if v := recover(); v != nil {
			slog.Error("latchkey: the context of a request has panicked when its session ended", slog.Any("panic", v))
		}
	}()
	now, err := w.store.Alive(w.store.Context(), e.id, w.terms)
	ended := errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrNotFound)
	if (ended || now != e.id) && w.counts(e, now) && ended {
		e.rq.leaveWatch()
		e.rq.context.endContext(session.ErrEnded)
	}
}

// counts reports whether an answer for e still counts. If so, its session has the id now.
func (w *watch) counts(e watched, now string) bool {
	in := &w.shards[e.rq.watched.shard]
	in.mu.Lock()
	defer in.mu.Unlock()
	at := e.rq.watched.at
	if at <= 0 {
		return false
	}
	there := &in.entries[at-1]
	if there.out || there.id != e.id {
		return false
	}
	there.id = now
	return true
}

// lost ends the context, since the lock is lost. If the lock was lost with the session, that is the cause.
func (rq *request) lost(why error) {
	if records.Ended(why) {
		if rq.endsItself.Load() {
			return
		}
		rq.leaveWatch()
		why = session.ErrEnded
	}
	rq.context.endContext(why)
}

// stepAside makes the requests that ctx belongs to step out before their handler ends sessions. The caller calls back with
// the ids that were ended, and the other requests step in again. So a handler goes on that ends its own session.
func (s *Sessions) stepAside(ctx context.Context) (back func(ended ...string)) {
	out := make(map[*request]string) // the id with which each is watched
	rq, _ := ctx.Value(requestKey{}).(*request)
	for ; rq != nil; rq = rq.outer {
		if rq.sessions.store != s.store {
			continue
		}
		if id := rq.stepOut(); id != "" {
			rq.endsItself.Store(true)
			out[rq] = id
		}
	}
	return func(ended ...string) {
		for rq, id := range out {
			if !slices.Contains(ended, id) {
				rq.endsItself.Store(false)
				rq.stepIn()
			}
		}
	}
}

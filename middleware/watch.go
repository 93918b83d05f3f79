package middleware

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/session"
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
//   - It steps out while a commit gives its session another ID, or ends it, and while its handler ends sessions by End,
//     EndAll or Update: what the request itself does must not end its own context. Then it steps in again, with the ID
//     that the session has then. If it has ended its own session, it is passed over until its commit begins another.
//
// To enter and to leave costs no allocation and no command, since nearly all requests are over before the watch asks
// for them. Requests are in one of several shards, so that they rarely wait for each other.
//
// watch_rounds.go says when the watch asks, and what an answer may do.
//
// A shard's mutex is never held during a round trip, nor while a context ends, which may call code of the
// application. It is locked after request.mu: a request enters while it holds request.mu.
type watch struct {
	store  *records.Engine
	terms  records.Terms
	timer  *time.Timer   // begins the next round
	on     atomic.Bool   // the timer is set, or a round is under way. A request that sets it to true also sets the timer
	rounds atomic.Uint32 // so far: the watch counts time in rounds, which costs a request less than a clock
	askers atomic.Int32  // the goroutines that ask, of all rounds
	shards [watchShards]watchShard

	silence silence
}

type watchShard struct {
	// mu guards entries, and the place of each request that belongs to this shard. While it is held, no mutex is
	// locked except those of a request's identity and observation.
	mu      sync.Mutex
	entries []watchEntry // in no order
	_       [32]byte     // so that two shards do not share a cache line
}

// A watchEntry is a request that is being watched.
type watchEntry struct {
	rq    *request
	id    string // of its session as far as the watch knows: the session may have moved since the request has opened it
	due   uint32 // the round that asks for it
	out   int32  // how often it has stepped out, and not in again: goroutines of a handler may end sessions at once
	over  bool   // it has ended its session itself
	asked bool   // a round has asked for it, with this ID, and there is no answer yet
}

// A place is where a request is in the watch.
type place struct {
	shard uint8 // never changes; by the time of the request's arrival, which is as good as chance
	at    int32 // 1 + its index among the shard's entries; 0: it has not entered; left: it is not watched any more
}

const left = math.MinInt32

const watchShards = 16

func newWatch(st *records.Engine, terms records.Terms) *watch {
	w := &watch{store: st, terms: terms}
	w.timer = time.AfterFunc(time.Hour, w.round)
	w.timer.Stop()
	return w
}

// watch makes the request enter, or gives the watch the ID that its session has now, if that is stored. It does nothing
// if the handler has returned. It is called with request.mu held.
func (rq *request) watch() {
	if !rq.origin.isStored() {
		return
	}
	w, id := rq.sessions.watch, rq.identity.knownID()
	due := w.rounds.Load() + watchPeriod + 1 // the next round may come at once
	in := &w.shards[rq.watched.shard]
	in.mu.Lock()
	switch at := rq.watched.at; {
	case at > 0:
		e := &in.entries[at-1]
		e.id, e.over, e.asked = id, false, e.asked && e.id == id
	case at == 0:
		in.entries = append(in.entries, watchEntry{rq: rq, id: id, due: due})
		rq.watched.at = int32(len(in.entries))
	}
	in.mu.Unlock()
	if !w.on.Load() && w.on.CompareAndSwap(false, true) {
		w.timer.Reset(watchEvery)
	}
}

// stepOut makes the watch pass the request over until it steps in again. It returns the ID of its session, or "" if it
// has not entered.
func (rq *request) stepOut() (id string) {
	rq.onEntry(func(e *watchEntry) { e.out++; id = e.id })
	return id
}

// stepIn undoes one stepOut. If the session's ID has changed, call watch before. over says that the request has ended the
// session itself.
func (rq *request) stepIn(over bool) {
	rq.onEntry(func(e *watchEntry) { e.out--; e.over = e.over || over })
}

// isAside reports whether the request has stepped out, or has ended its session itself.
func (rq *request) isAside() (aside bool) {
	rq.onEntry(func(e *watchEntry) { aside = e.isAside() })
	return aside
}

func (e *watchEntry) isAside() bool { return e.out > 0 || e.over }

// hasMoved reports whether the watch has followed the session to another ID than the one that this request has opened.
// Redis forgets a move after a minute, and the watch does not.
func (rq *request) hasMoved() (moved bool) {
	opened := rq.identity.knownID()
	rq.onEntry(func(e *watchEntry) { moved = e.id != opened })
	return moved
}

// onEntry calls f with the request's entry, if it has entered and has not left. The shard's mutex is held.
func (rq *request) onEntry(f func(*watchEntry)) {
	in := &rq.sessions.watch.shards[rq.watched.shard]
	in.mu.Lock()
	defer in.mu.Unlock()
	if at := rq.watched.at; at > 0 {
		f(&in.entries[at-1])
	}
}

// leaveWatch makes the request leave for good, since its handler has returned or its session has ended. It returns false
// if the request had left already.
func (rq *request) leaveWatch() bool {
	in := &rq.sessions.watch.shards[rq.watched.shard]
	in.mu.Lock()
	defer in.mu.Unlock()
	return rq.leave(in)
}

// leave is leaveWatch, with in.mu held.
func (rq *request) leave(in *watchShard) bool {
	if at := rq.watched.at; at > 0 { // the last one takes its place
		last := len(in.entries) - 1
		in.entries[at-1] = in.entries[last]
		in.entries[at-1].rq.watched.at = at
		in.entries[last] = watchEntry{}
		in.entries = in.entries[:last]
	}
	before := rq.watched.at
	rq.watched.at = left
	return before != left
}

// leaveEnded is leaveWatch for a request whose session has ended. If the request has not left yet, observers are told of
// that with the mutex held: a request that is done has left, so its own event comes later.
func (rq *request) leaveEnded() {
	in := &rq.sessions.watch.shards[rq.watched.shard]
	in.mu.Lock()
	defer in.mu.Unlock()
	if rq.leave(in) {
		rq.endedOpen()
	}
}

// hasLeft reports whether the request has left.
func (rq *request) hasLeft() bool {
	in := &rq.sessions.watch.shards[rq.watched.shard]
	in.mu.Lock()
	defer in.mu.Unlock()
	return rq.watched.at == left
}

// endIfLost makes the loss of the lock end the request's context.
func (rq *request) endIfLost() {
	since := rq.holds.Load()
	rq.hold.OnLost(func(why error) {
		rq.holds.CompareAndSwap(since, 0) // unless the request has opened the session again
		rq.lost(why)
		if records.HeldTooLong(why) { // the handler may return much later, or never; only then there is another line
			rq.log(slog.LevelWarn, "lost", "a handler has held its session for MaxHold, and goes on without it",
				slog.Duration("held", time.Since(time.Unix(0, since))))
		}
	})
}

// lost ends the context, since the lock is lost. If the lock was lost with the session, that is the cause.
func (rq *request) lost(why error) {
	if records.Ended(why) {
		if rq.isAside() {
			return
		}
		rq.leaveEnded()
		why = session.ErrEnded
	}
	rq.context.endContext(why)
}

// endedOpen tells observers that the session has ended while the request had it open.
func (rq *request) endedOpen() {
	if id := rq.identity.knownID(); rq.seen != nil && id != "" { // otherwise it has not opened the session yet
		rq.seen.Noticed(&records.Notice{Session: id, What: endedOpen, Time: time.Now()}, false)
	}
}

// stepAside makes the requests that ctx belongs to step out before their handler ends sessions. The caller then calls
// back with the IDs that were ended, and the requests step in again. So a handler that ends its own session goes on.
func (s *Sessions) stepAside(ctx context.Context) (back func(ended ...string)) {
	out := make(map[*request]string) // the ID with which each is watched
	for rq := range s.requestsOn(ctx) {
		if id := rq.stepOut(); id != "" {
			out[rq] = id
		}
	}
	return func(ended ...string) {
		for rq, id := range out {
			over := slices.Contains(ended, id)
			if !over && len(ended) > 0 { // another request may have given the session a new ID, which the watch does not know yet
				now, _ := s.store.Alive(s.store.Context(), id, s.terms)
				over = slices.Contains(ended, now)
			}
			rq.stepIn(over)
		}
	}
}

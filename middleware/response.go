package middleware

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// A response is held back until the session is committed.
//
// The order is always: commit, then header (with the cookie), then body. Before the commit an error can replace
// the response; after the commit the response is passed straight through. Like any ResponseWriter it is used
// by one goroutine at a time.
type response struct {
	around  http.ResponseWriter // the writer around us, to which the response goes
	request request
	before  http.Header // fields that were set before the handler ran
	draft   *draft      // not nil in a first run: see draft.go

	status    int         // 0 until the handler has chosen
	caching   [2]string   // values of Vary and Cache-Control: here they spare an allocation of 32 bytes
	header    http.Header // as it was when the status was chosen: later changes do not count
	buffered  []byte
	tail      tail        // knows the declared length, and keeps the end of the response
	failed    error       // this error has replaced the response, or has cut it off
	ignored   http.Header // the header that the handler gets after an error
	explicit  bool        // the handler has chosen the status by WriteHeader
	begun     bool        // the header has left our hands
	abandoned bool        // the handler has panicked: see passThrough
	warned    bool        // a superfluous WriteHeader was logged
}

func (s *Sessions) newResponse(w http.ResponseWriter, r *http.Request, mode Mode, route string) *response {
	arrived := time.Now()
	rw := &response{
		request: request{sessions: s, base: r, mode: mode, identity: identity{route: route, arrived: arrived}, watched: place{shard: uint8(arrived.Nanosecond() / 64 % watchShards)}},
		around:  w,
		tail:    tail{declared: -1},
	}
	// Mostly the header is empty. Without a copy, a request without a session takes a tenth less time.
	if h := w.Header(); len(h) > 0 {
		rw.before = h.Clone()
	}
	return rw
}

// handlerEnd is the reason of the last commit. Commits for other reasons come while the handler runs.
const handlerEnd = "the end of the handler"

// Unwrap gives http.ResponseController the methods that have nothing to do with
// the session, such as deadlines.
func (rw *response) Unwrap() http.ResponseWriter { return rw.around }

// A hijackable is the response if the connection can be hijacked. If it cannot, as over HTTP/2 and inside an
// http.TimeoutHandler, handlers must not see a Hijack method: websocket libraries send their 101 as soon as
// they see it. See stream.go.
type hijackable struct{ *response }

// offers reports whether w, or a writer that it wraps, is a T.
func offers[T any](w http.ResponseWriter) bool {
	for {
		if _, ok := w.(T); ok {
			return true
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = u.Unwrap()
	}
}

// finishResponse ends a response that began, or failed, before the handler returned. If the session is open, it
// is committed. If the last commit has failed, or a change came late, the response is cut off.
func (rw *response) finishResponse() {
	rq := &rw.request
	if rw.failed != nil {
		_ = rq.abandon(handlerEnd) // in case the session was reopened while the response failed
		return
	}
	if rw.draft != nil {
		rw.showHeader()
	}
	if rq.sessions.options.Discard != nil {
		rw.discardFailed()
	}
	err := rq.commit(handlerEnd, false)
	if err != nil {
		rw.failed, rw.ignored = err, make(http.Header)
		rq.logFailure(err)
	}
	if err != nil || rq.late.Load() != nil {
		rw.cutOff()
	}
	_ = rw.tail.releaseLast(rw.around) // fails if the client is gone
}

// beginResponse commits and, if that succeeds, sends what was held back.
func (rw *response) beginResponse(by string) error {
	rq := &rw.request
	if rq.sessions.options.Discard != nil {
		rw.discardFailed()
	}
	if err := rq.commit(by, true); err != nil {
		if rq.runsAgain() {
			rw.discardResponse(err)
		} else {
			rw.replaceByError(err)
		}
		return err
	}
	if late := rq.late.Load(); late != nil {
		rw.replaceByError(*late)
		return *late
	}
	live, early := rw.around.Header(), by != handlerEnd
	if rw.draft != nil {
		rw.publishDraft()
		if early {
			defer rw.showSentHeader()
		}
	}
	rw.begun = true
	if rw.status == 0 { // net/http chooses it, at the first byte or the end
		rw.tail.declared = contentLength(live)
		rw.decorate(live, early)
		return nil
	}
	if maps.EqualFunc(live, rw.header, slices.Equal[[]string]) {
		rw.decorate(live, early)
		return rw.sendBuffered()
	}
	return rw.sendWithTrailers(live, early)
}

// discardFailed undoes what the handler has done to the session, if the status means, by Options.Discard, that
// the handler has failed.
func (rw *response) discardFailed() {
	if rw.status == 0 || !rw.request.sessions.options.Discard(rw.status) {
		return
	}
	rw.request.mu.Lock()
	defer rw.request.mu.Unlock()
	if s := rw.request.session; s != nil {
		s.Discard()
	}
}

// sendBuffered makes the calls that the handler has made. It calls WriteHeader only if the handler did:
// writers that complete the header in Write, as compressors do, rely on that.
func (rw *response) sendBuffered() error {
	if rw.explicit {
		rw.around.WriteHeader(rw.status)
	}
	if len(rw.buffered) == 0 {
		return nil
	}
	// The last byte of a declared length is either not in the buffer, or may be sent now.
	n, err := rw.around.Write(rw.buffered)
	rw.tail.sent += int64(n)
	rw.buffered = nil
	return err
}

// sendWithTrailers sends the header as it was when the status was chosen. The fields that the handler has set
// since are trailers, which net/http looks for at the end: sendWithTrailers puts them back.
func (rw *response) sendWithTrailers(live http.Header, early bool) error {
	since := maps.Clone(live)
	clear(live)
	maps.Copy(live, rw.header)
	rw.decorate(live, early)
	rw.decorate(since, early) // for a writer around us that looks only at the end
	sent := maps.Clone(live)
	rw.explicit = rw.explicit || len(rw.buffered) == 0 // or nothing would send the header
	err := rw.sendBuffered()
	for name := range sent {
		if _, ok := since[name]; !ok {
			delete(live, name)
		}
	}
	for name, values := range since { // except fields that a writer around us has changed meanwhile
		if !slices.Equal(values, sent[name]) {
			live[name] = values
		}
	}
	return err
}

// replaceByError replaces the response by an error.
func (rw *response) replaceByError(err error) {
	rw.discardResponse(err)
	rw.keepCookies()
	rw.request.sessions.respondError(rw.around, &rw.request, err)
}

// discardResponse removes what the handler has written and put into the header. What the handler writes later
// is dropped.
func (rw *response) discardResponse(err error) {
	rw.failed, rw.ignored, rw.buffered = err, make(http.Header), nil
	h := rw.around.Header()
	clear(h)
	maps.Copy(h, rw.before)
}

// keepCookies puts the cookies of commits that have succeeded before, also in other Sessions inside, back
// into the header: without them the client would lose those sessions.
func (rw *response) keepCookies() {
	for _, cookie := range rw.request.committedCookies() {
		h := rw.around.Header()
		h.Add("Set-Cookie", cookie.String())
		forbidCaching(h)
	}
}

// passThrough is for a handler that has panicked. All later writes are passed straight through, so that a handler
// around us that recovers can respond. It may even use this response as its writer: a framework that keeps its
// current writer does so.
func (rw *response) passThrough() {
	if rw.begun || rw.failed != nil {
		return
	}
	if rw.draft != nil {
		rw.publishDraft()
	}
	rw.discardResponse(nil)
	rw.keepCookies()
	rw.begun, rw.abandoned, rw.tail = true, true, tail{declared: -1}
}

// contentLength returns the Content-Length that h declares, or -1.
func contentLength(h http.Header) int64 {
	n, err := strconv.ParseInt(cmp.Or(h.Get("Content-Length"), "-1"), 10, 64)
	if err != nil {
		return -1
	}
	return max(n, -1)
}

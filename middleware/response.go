package middleware

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A response holds an answer back until the session is committed.
//
// The order is always: commit, then header (with the cookie), then body. Until the commit the
// answer can be replaced by an error; from then on everything goes straight through. Like any
// ResponseWriter it is used by one goroutine at a time.
type response struct {
	inner   http.ResponseWriter
	request request
	before  http.Header // what others had set before the handler ran

	status   int         // 0 until the handler has chosen
	header   http.Header // as it was at that moment: later changes do not count
	buffered []byte
	begun    bool        // the header has left our hands
	tail     tail        // knows the declared length, and keeps the end of an answer
	failed   error       // the answer was replaced by this error
	ignored  http.Header // the one that the handler gets then
}

// Unwrap gives http.ResponseController the methods that have nothing to do with
// the session, such as deadlines.
func (rw *response) Unwrap() http.ResponseWriter { return rw.inner }

// begin commits and, if that succeeds, sends what was held back.
func (rw *response) begin(by string) error {
	if err := rw.request.commit(by); err != nil {
		rw.fail(err)
		return err
	}
	if rw.request.late.Load() { // by another goroutine of the handler
		return http.ErrAbortHandler
	}
	rw.begun = true
	if rw.status == 0 {
		rw.decorate(rw.inner.Header())
		return nil
	}
	rw.sendHeader()
	if len(rw.buffered) == 0 {
		return nil
	}
	_, err := rw.tail.write(rw.inner, rw.buffered)
	rw.buffered = nil
	return err
}

// fail replaces the answer by an error.
func (rw *response) fail(err error) {
	rw.abandon()
	rw.failed, rw.ignored = err, make(http.Header)
	rw.request.sessions.answer(rw.inner, &rw.request, err)
}

// abandon removes what the handler has put into the header.
func (rw *response) abandon() {
	if rw.begun {
		return
	}
	rw.buffered = nil
	h := rw.Header()
	clear(h)
	maps.Copy(h, rw.before)
}

// finish sends the rest of the answer, after the handler has returned.
func (rw *response) finish() {
	if !rw.begun && rw.failed == nil {
		_ = rw.begin("the end of the handler") // answered, if it failed
	}
	if rw.failed != nil {
		return
	}
	if rw.request.late.Load() {
		panic(http.ErrAbortHandler) // net/http's way to cut an answer off
	}
	_ = rw.tail.release(rw.inner) // the client may be gone
}

// sendHeader sends the header as it was at WriteHeader.
func (rw *response) sendHeader() {
	live := rw.inner.Header()
	if maps.EqualFunc(live, rw.header, slices.Equal[[]string]) {
		rw.decorate(live)
		rw.inner.WriteHeader(rw.status)
		return
	}
	// What the handler has set since are trailers, which net/http looks for at
	// the end: put them back.
	since := maps.Clone(live)
	clear(live)
	maps.Copy(live, rw.header)
	rw.decorate(live)
	rw.inner.WriteHeader(rw.status)
	clear(live)
	maps.Copy(live, since)
	rw.decorate(live) // for a writer around us that looks only at the end
}

// decorate adds the session's part to a header.
func (rw *response) decorate(h http.Header) {
	rq := &rw.request
	rq.mu.Lock()
	defer rq.mu.Unlock()
	if rq.session != nil && rq.session.Used() { // perhaps after its commit
		h.Add("Vary", "Cookie")
	}
	if rq.cookie != nil {
		h.Add("Set-Cookie", rq.cookie.String())
		forbidCaching(h) // a cache would hand the session on
	}
}

// forbidCaching keeps an answer out of every cache. Content delivery networks and
// nginx obey headers of their own before Cache-Control (RFC 9213), so those of the
// handler or its surroundings are removed.
func forbidCaching(h http.Header) {
	for name := range h {
		lower := strings.ToLower(name)
		if strings.HasSuffix(lower, "cache-control") || lower == "surrogate-control" || lower == "x-accel-expires" {
			delete(h, name)
		}
	}
	h.Set("Cache-Control", "no-store")
}

// snapshot returns a copy of h, or nil if it is empty, as it mostly is: that saves
// a request without a session a tenth of its time.
func snapshot(h http.Header) http.Header {
	if len(h) == 0 {
		return nil
	}
	return h.Clone()
}

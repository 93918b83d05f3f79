package middleware

import (
	"maps"
	"net/http"
	"slices"
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
	draft   *draft      // not nil in a first run: see draft.go

	status    int         // 0 until the handler has chosen
	caching   [2]string   // values of Vary and Cache-Control, which need no memory of their own
	header    http.Header // as it was at that moment: later changes do not count
	buffered  []byte
	tail      tail        // knows the declared length, and keeps the end of an answer
	failed    error       // the answer was replaced by this error
	ignored   http.Header // the one that the handler gets then
	explicit  bool        // the handler has chosen the status by WriteHeader
	begun     bool        // the header has left our hands
	abandoned bool        // the handler has panicked: see abandon
	warned    bool        // a superfluous WriteHeader was logged
}

// handlerEnd is what commits last. Whatever commits earlier does so in the middle of the handler.
const handlerEnd = "the end of the handler"

// Unwrap gives http.ResponseController the methods that have nothing to do with
// the session, such as deadlines.
func (rw *response) Unwrap() http.ResponseWriter { return rw.inner }

// begin commits and, if that succeeds, sends what was held back.
func (rw *response) begin(by string) error {
	rw.discardFailed()
	switch err := rw.request.commitToAnswer(by); err {
	case nil:
	case errRunAgain:
		rw.discard()
		return err
	default:
		rw.fail(err)
		return err
	}
	if late := rw.request.late.Load(); late != nil {
		rw.fail(*late)
		return *late
	}
	rw.publish()
	rw.begun = true
	live, early := rw.inner.Header(), by != handlerEnd
	if early {
		defer rw.keepUp()
	}
	if rw.status == 0 { // net/http chooses it, at the first byte or the end
		rw.tail.declared = contentLength(live)
		rw.decorate(live, early)
		return nil
	}
	if maps.EqualFunc(live, rw.header, slices.Equal[[]string]) {
		rw.decorate(live, early)
		return rw.send()
	}
	return rw.sendWithTrailers(live, early)
}

// discardFailed undoes what the handler has done to the session, if its status says that it failed.
func (rw *response) discardFailed() {
	failed := rw.request.sessions.options.Discard
	if failed == nil || rw.status == 0 || !failed(rw.status) {
		return
	}
	rw.request.mu.Lock()
	defer rw.request.mu.Unlock()
	if s := rw.request.session; s != nil {
		s.Discard()
	}
}

// send makes the calls that the handler has made. It calls WriteHeader only if the handler did:
// writers that complete the header in Write, as compressors do, rely on that.
func (rw *response) send() error {
	if rw.explicit {
		rw.inner.WriteHeader(rw.status)
	}
	if len(rw.buffered) == 0 {
		return nil
	}
	// The last byte of a declared length is either not in here, or is wanted now.
	n, err := rw.inner.Write(rw.buffered)
	rw.tail.sent += int64(n)
	rw.buffered = nil
	return err
}

// sendWithTrailers sends the header as it was when the status was chosen. What the handler has
// set since are trailers, which net/http looks for at the end: they are put back.
func (rw *response) sendWithTrailers(live http.Header, early bool) error {
	since := maps.Clone(live)
	clear(live)
	maps.Copy(live, rw.header)
	rw.decorate(live, early)
	rw.decorate(since, early) // for a writer around us that looks only at the end
	sent := maps.Clone(live)
	rw.explicit = rw.explicit || len(rw.buffered) == 0 // or nothing would send the header
	err := rw.send()
	for name := range sent {
		if _, ok := since[name]; !ok {
			delete(live, name)
		}
	}
	for name, values := range since { // not those that a writer around us has changed meanwhile
		if !slices.Equal(values, sent[name]) {
			live[name] = values
		}
	}
	return err
}

// fail replaces the answer by an error.
func (rw *response) fail(err error) {
	rw.reset()
	rw.failed, rw.ignored = err, make(http.Header)
	rw.request.sessions.answer(rw.inner, &rw.request, err)
}

// reset removes what the handler has written and put into the header. What stays is the cookie of
// a commit that has succeeded before, also in other Sessions inside: without it the client would
// lose the session.
func (rw *response) reset() {
	rw.buffered = nil
	h := rw.inner.Header()
	clear(h)
	maps.Copy(h, rw.before)
	for _, cookie := range rw.request.committedCookies() {
		h.Add("Set-Cookie", cookie.String())
		forbidCaching(h)
	}
}

// abandon is for a handler that has panicked. From here on everything goes straight through, so
// that a handler around us that recovers can answer, even one that was given this response: a
// framework that keeps its current writer answers through it.
func (rw *response) abandon() {
	if rw.begun || rw.failed != nil {
		return
	}
	rw.publish()
	rw.reset()
	rw.begun, rw.abandoned, rw.tail = true, true, tail{declared: -1}
}

// finish sends the rest of the answer, after the handler has returned. again: it has thrown it away,
// and the handler is to run again.
func (rw *response) finish() (again bool) {
	if !rw.begun && rw.failed == nil {
		return rw.begin(handlerEnd) == errRunAgain // answered, if it failed
	}
	if rw.failed != nil {
		rw.request.giveUp(handlerEnd) // what was reopened while it failed
		return false
	}
	rw.show()
	rw.commitReopened()
	if rw.request.late.Load() != nil {
		rw.cutOff()
	}
	_ = rw.tail.release(rw.inner) // the client may be gone
	return false
}

// snapshot returns a copy of h, or nil if it is empty, as it mostly is: that saves
// a request without a session a tenth of its time.
func snapshot(h http.Header) http.Header {
	if len(h) == 0 {
		return nil
	}
	return h.Clone()
}

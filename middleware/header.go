package middleware

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// snapshot returns a copy of h, or nil if it is empty, as it mostly is: that saves
// a request without a session a tenth of its time.
func snapshot(h http.Header) http.Header {
	if len(h) == 0 {
		return nil
	}
	return h.Clone()
}

// contentLength returns the Content-Length that h declares, or -1.
func contentLength(h http.Header) int64 {
	declared := h.Get("Content-Length")
	if declared == "" {
		return -1
	}
	n, err := strconv.ParseInt(declared, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// sendHeader sends the header as it was at WriteHeader.
func (rw *response) sendHeader() {
	live := rw.Header()
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

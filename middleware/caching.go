package middleware

import (
	"net/http"
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// decorate adds the session's part to a header: the cookie, if there are cookies, and the fields that keep caches
// from giving one visitor's response to another. A response that begins before the handler has ended counts as a
// response that uses the session, since the handler may still read the session. A response after a failed
// session.Start also counts.
func (rw *response) decorate(h http.Header, early bool) {
	rq := &rw.request
	rq.mu.Lock()
	defer rq.mu.Unlock()
	used := rq.peeked.Load() || rq.session != nil && (early || keep.Used(rq.session)) // perhaps after its commit
	// Shared caches must not keep the response, unless the handler has said what caches may do. The response
	// also varies by cookie or token. Both are needed, since some caches ignore Vary.
	_, chosen := h["Cache-Control"]
	vary, control := rq.sessions.cookies.vary, "private"
	if rq.role == member { // not even the browser's: after the logout, Back must not show the page
		control = "no-store"
	}
	switch {
	case !used && !rq.startFailed:
	case !chosen && len(h["Vary"]) == 0:
		rw.caching = [...]string{vary, control}
		h["Vary"], h["Cache-Control"] = rw.caching[:1:1], rw.caching[1:]
	default:
		if !chosen {
			h.Set("Cache-Control", control)
		}
		varyBy(h, vary)
	}
	for _, cookie := range rq.cookies() {
		if cookie == nil {
			continue
		}
		if rq.sessions.cookies.token == nil {
			h.Add("Set-Cookie", cookie.String())
		}
		forbidCaching(h) // a cache would hand the session on, or the token in the body
	}
}

// varyBy adds a field to Vary, and joins all lines of Vary into one, since some caches look only at the
// last line (nginx up to 1.22).
func varyBy(h http.Header, name string) {
	fields := strings.Split(strings.Join(h["Vary"], ","), ",")
	for i, field := range fields {
		fields[i] = strings.TrimSpace(field)
	}
	if slices.Contains(fields, "*") {
		return
	}
	fields = slices.DeleteFunc(fields, func(field string) bool {
		return field == "" || strings.EqualFold(field, name)
	})
	h.Set("Vary", strings.Join(append(fields, name), ", "))
}

// forbidCaching keeps a response out of every cache. Content delivery networks and nginx obey their special
// headers before Cache-Control (RFC 9213), so forbidCaching removes these headers.
func forbidCaching(h http.Header) {
	for name := range h {
		lower := strings.ToLower(name)
		if strings.HasSuffix(lower, "cache-control") || lower == "surrogate-control" || lower == "x-accel-expires" {
			delete(h, name)
		}
	}
	h.Set("Cache-Control", "no-store")
}

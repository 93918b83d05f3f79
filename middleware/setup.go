package middleware

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
)

// # What is set up wrong
//
// Some mistakes in the set-up make no request fail: a visitor is logged in and out by turns, or never gets a session.
// Requests show them, and these functions say so in the log: a line of a kind once a minute at most, with how many
// requests or cookies have shown it since the line before. The lines have no IDs, and nothing that a client has sent.
//
// Not every mistake shows. If two Sessions with the same Name and Keys, but with different stores, serve different
// routes, each replaces the other's cookie: to either the other's session looks like one that has expired. Sessions
// that are nested in one request are told apart: see nestIn.

// warn logs a mistake in the set-up, which n cookies or requests have shown now.
func (rq *request) warn(kind string, n int, message string, attrs ...slog.Attr) {
	s, ctx := rq.sessions, rq.base.Context()
	logger := cmp.Or(s.options.Logger, slog.Default())
	if !logger.Enabled(ctx, slog.LevelWarn) {
		return
	}
	if before, ok := s.mistakes.pass(kind, n, time.Now()); ok {
		all := append([]slog.Attr{slog.String("kind", kind), slog.Int("count", before+n)}, attrs...)
		logger.LogAttrs(ctx, slog.LevelWarn, "latchkey: "+message, all...)
	}
}

// lookAtCookies warns of cookies that another program, or a process with other keys, has signed. came are the IDs of
// the genuine ones, and unknown is how many others are well-formed.
func (rq *request) lookAtCookies(came []cameID, unknown int) {
	s := rq.sessions
	if unknown > 0 {
		rq.warn("unknown_key", unknown, "cookies or tokens are well-formed, and signed with a key that is not in Options.Keys: "+
			"does another process have other keys? Was a key removed too early? Does another program use the same cookie name?")
	}
	if s.cookies.token != nil {
		return
	}
	// The signature contains the name of the cookie. So the same session comes with a second name only if other
	// Sessions have signed that name.
	if slices.ContainsFunc(came, func(c cameID) bool { return c.role == guest && isOfUser(c.id) }) {
		rq.warn("shared_name", 1, "the cookie of a guest leads to the session of a logged-in user: other Sessions with the same Keys "+
			"have a member's cookie, or a token, of this name: give each Sessions its own Options.Cookie.Name",
			slog.String("cookie", s.cookies.names[guest]))
	}
	if len(came) > 0 && s.cookies.pattern.Secure && !s.secureOverHTTP.Load() && !overHTTPS(rq.base) {
		s.secureOverHTTP.Store(true)
	}
}

// lookAtTransport warns if the cookie that the response sets does not fit how the browser is connected: it is Secure, and
// the browser speaks plain HTTP, so it drops the cookie; or it is not, and the browser speaks HTTPS. If a Secure cookie
// has ever come back over plain HTTP, a proxy that does not say so speaks HTTPS with browsers.
func (rq *request) lookAtTransport() {
	s := rq.sessions
	secure, https := s.cookies.pattern.Secure, overHTTPS(rq.base)
	switch {
	case s.cookies.token != nil:
	case !secure && https:
		rq.warn("not_secure", 1, "a cookie that is not Secure is set over HTTPS, and browsers send it over plain HTTP, too: "+
			"set Secure in Options.Cookie, or leave Options.Cookie out, which makes it __Host-session and Secure",
			slog.String("cookie", s.cookies.pattern.Name))
	case secure && !https && !s.secureOverHTTP.Load():
		rq.warn("plain_http", 1, "a Secure cookie is set over plain HTTP, and browsers drop it, except some for localhost: "+
			"serve HTTPS; or let the proxy that serves it set X-Forwarded-Proto; or, while developing, give Options.Cookie a Name and no Secure",
			slog.String("cookie", s.cookies.pattern.Name))
	}
}

// lookAtError warns of a record that a later version of Latchkey has written.
func (rq *request) lookAtError(err error) {
	if errors.Is(err, records.ErrLaterFormat) {
		rq.warn("later_format", 1, "sessions have a later format, and this version of Latchkey cannot read them: "+
			"bring all processes to the same version")
	}
}

// overHTTPS reports whether the client speaks HTTPS, with this process or with a proxy that says so.
func overHTTPS(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	says := func(header, what string) bool {
		for _, line := range r.Header[header] {
			for part := range strings.FieldsFuncSeq(line, func(c rune) bool { return strings.ContainsRune(",; \t", c) }) {
				if strings.EqualFold(strings.ReplaceAll(part, `"`, ""), what) {
					return true
				}
			}
		}
		return false
	}
	return says("X-Forwarded-Proto", "https") || says("Forwarded", "proto=https")
}

package middleware

import (
	"log/slog"
	"net/http"
	"time"
)

// Options of the middleware. All but Keys may be left out.
type Options struct {
	// Keys sign the cookie: one or more keys of at least 32 random bytes each, newest first. The first key
	// signs, all keys verify. To change keys without logging users out, first deploy the new key in the last
	// place, then move it to the front. Remove the old key after Lifetime, or after the longest Remember.
	Keys [][]byte
	// TTL is the idle timeout. Default 30 min.
	TTL time.Duration
	// Lifetime is the absolute timeout, counted from the session's creation or its last Login. A Renew does not
	// extend it. Default 24 h.
	Lifetime time.Duration
	// GuestTTL is the idle timeout of a guest's session, one that has had no Login or Renew. A short GuestTTL limits
	// how long a flood of new visitors fills Redis. Default TTL, which is also the longest.
	GuestTTL time.Duration
	// LockWait is the longest time that a request waits for its session, or the store's Timeout if that is longer. Then it
	// is answered with 503. Default 10 s.
	LockWait time.Duration
	// MaxHold is the longest time that a request may hold its session. Then the request's context ends with
	// store.ErrLost as the cause, the request can no longer save, and the next request gets the session.
	// Default 1 min, or store.Options.Lease if that is longer.
	MaxHold time.Duration
	// MaxWaiters is how many requests may wait for one session in this process. Any further request is answered
	// with 503 at once. Default 128.
	MaxWaiters int
	// MaxBytes is the largest encoded session. Default 1 MiB, which is generous: a session that
	// large costs a request tens of milliseconds.
	MaxBytes int
	// Buffer is how many bytes of a response are held back until the session is saved. A longer response
	// saves the session early. Default 64 KiB.
	Buffer int
	// Cookie is the pattern of two cookies: until Login or Renew a session has a guest's cookie, which has the Name,
	// and then a member's, which has the Name followed by "-login". Default: Name "__Host-session" and Secure, which
	// needs HTTPS; with a Name of your own, Secure is as you set it. Path "/" and SameSite=Lax unless set, HttpOnly
	// always. The cookie ends with the browser, unless MaxAge is set, which is in seconds and should be Lifetime.
	// [session.Session.Remember] makes the cookie of a single session outlast the browser.
	Cookie http.Cookie
	// Token returns the session's token that a request carries, or "", for clients that keep no cookie.
	// [Bearer] is for Authorization headers. With Token, cookies are neither read nor set: the handler gives
	// the client the token that [Sessions.Token] returns. Of Cookie only the Name may be set, which is part of
	// the signed text. Responses vary by Authorization. If the token is elsewhere, add to Vary yourself. Token
	// may be called more than once for a request. Default: there is a cookie.
	Token func(*http.Request) string
	// MaxSessions is how many sessions a user may have, see [Session.Login]. A login beyond that number
	// ends the session that would expire first. With RefuseLogin the login fails instead, with
	// [store.ErrTooManySessions], and is answered with 403. But a session with which no request has come back since
	// its login is replaced first: the response to that login may have been lost. RefuseLogin without
	// MaxSessions is an error. Default 1,000: more than people need, and so few that a program that logs in again
	// and again, and keeps no cookie, does not harm other users.
	MaxSessions int
	RefuseLogin bool
	// Device says where a user logs in, such as the browser and the place, for [Sessions.List]. At most 256 bytes are
	// kept. Default: nothing.
	Device func(*http.Request) string
	// Hooks are called when sessions begin, get another ID, or end. Default: none.
	Hooks Hooks
	// Mode says how to open a request's session. Default: Exclusive. A route may have its own mode, see
	// [Sessions.Exclusive].
	Mode func(*http.Request) Mode
	// Label says what a request is called while it holds its session: in Redis, and in the log lines and
	// errors of waiters. There a label is cut to 64 bytes, and characters that cannot be printed are replaced.
	// It must not contain secrets; a URL path may contain one. Default: the method, and the route's pattern if
	// it is known.
	Label func(*http.Request) string
	// OnError responds to a request whose session could not be opened or saved. Call WriteHeader with
	// Status(err) before writing a body: without it the response is a 200. Retry-After is set already if it
	// applies, and the error is logged. There is no session in OnError: session.FromContext panics, or returns
	// that of other Sessions around this one. Default: a line of plain text.
	OnError func(http.ResponseWriter, *http.Request, error)
	// OnCorrupt decides about a record that is damaged, of an unknown version or too large. If OnCorrupt
	// returns an error, the request fails with it. If OnCorrupt returns nil, an empty session without a user
	// replaces the record; if the old session had a user, the empty session gets a new ID. Default: the
	// request fails with the error that is passed to OnCorrupt.
	OnCorrupt func(*http.Request, error) error
	// Discard reports whether a response with this status, which the handler has chosen, means that the
	// handler's work has failed. If so, the handler's changes to the session, Renew and Destroy included, are not
	// saved, as after Session.Discard. Discard is not called when the handler calls Commit. Discard is for frameworks
	// that respond to a panic themselves, inside the sessions:
	//
	//	Discard: func(status int) bool { return status >= 500 }
	//
	// Default: all changes are saved.
	Discard func(status int) bool
	// Observers receive events of what the sessions do, for metrics and traces. Those that are nil are left out. Default: none.
	Observers []Observer
	// Logger gets one line for each error of a request, and at most ten lines of a kind in a second. The next line says how
	// many lines were left out. If the requests show that something is set up wrong, such as a Secure cookie over
	// plain HTTP, Logger gets a warning, once a minute at most. Default: slog.Default().
	Logger *slog.Logger
}

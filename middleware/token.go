package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/a2139e8d/latchkey/session"
)

// # Sessions without a cookie
//
// With Options.Token a session is used by a program that keeps its token, and not by a browser. Everything
// else is as with cookies: the token is what would be the cookie's value, it is verified by the same
// rules, and dies with its id. The differences follow from there being no header that takes the token to
// the client:
//
//   - The handler sends the token that Sessions.Token returns after the commit. If a session would begin
//     or get a new id at the end of the handler, when nothing can be sent any more, the commit fails:
//     nobody could ever open that session.
//   - After the response has begun this still works: a websocket can Renew and send the token itself.
//   - No request counts as a navigation (see navigates): a program whose token is dead, unknown or
//     missing gets a 401 when it writes, and logs in again.

var (
	errNoTokens = errors.New("middleware: Token is for Sessions with Options.Token: these have cookies")
	errNotSaved = errors.New("middleware: Token before the session is saved: call Commit before")
	errNoToken  = errors.New("middleware: Token where no session is kept: " +
		"the request has none, and has begun none or ended it")
	errNobody = errors.New("middleware: the handler has ended, so nothing can give the client a new token: " +
		"call Commit and Sessions.Token where a session begins or gets a new id, " +
		"and answer with 401 where there should be one")
	errNoAccess   = errors.New("middleware: a write without the token of a session")
	errAttributes = errors.New("middleware: Options.Token is set, so there is no cookie: " +
		"of Options.Cookie only Name may be set")
)

// Bearer returns the token of a request's Authorization header, as RFC 6750 has it, or "": for
// Options.Token. That is the scheme in any case of letters, one space or more, and a token of letters,
// digits and -._~+/ with any number of = at its end. It returns "" if there is more than one such header.
func Bearer(r *http.Request) string {
	lines := r.Header["Authorization"]
	if len(lines) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	token = strings.TrimLeft(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || !isToken68(token) {
		return ""
	}
	return token
}

// isToken68 reports whether s is what RFC 9110 calls a token68, and RFC 6750 a b64token.
func isToken68(s string) bool {
	own := strings.TrimRight(s, "=")
	return own != "" && !strings.ContainsFunc(own, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("-._~+/", c)
	})
}

// Token returns the token of the request's session, for a handler that gives it to its client: see
// Options.Token. Call it after a session.Commit that has begun the session or given it a new id, or after
// the response has begun. If the id stays, Token returns the token that the request came with; or the
// same one signed anew, if Remember has moved the session's end beyond that of its signature, or if an
// older one of Options.Keys has signed it.
//
// A response for which Token is called before its first byte is not cached.
//
// Token fails if the session is not saved yet, is open again, or its commit has failed; if there is no
// session; and if these Sessions use cookies.
func (s *Sessions) Token(ctx context.Context) (string, error) {
	if s.cookies.token == nil {
		return "", errNoTokens
	}
	rq := s.requestOf(ctx)
	if rq == nil {
		return "", fmt.Errorf("middleware: Token: %w", session.ErrNoSession)
	}
	came := s.cookies.token(rq.base)
	rq.mu.Lock()
	defer rq.mu.Unlock()
	switch {
	case !rq.committed:
		return "", errNotSaved
	case rq.err != nil:
		return "", fmt.Errorf("middleware: Token after a commit that failed: %w", rq.err)
	case rq.session == nil, rq.origin != locked && rq.origin != readOnly && rq.origin != optimistic:
		return "", errNoToken
	case rq.cookie == nil:
		if id, ok := s.ID(came); !ok || id != rq.identity.knownID() {
			return "", errNoToken // the handler has changed what it is read from
		}
		_, own := rq.identity.stored()
		cookie, err := s.cookies.reissue(came, own)
		if err != nil {
			return "", err
		}
		rq.cookie = cookie // so that the response is not cached
	}
	return rq.cookie.Value, nil
}

// ID returns the public id of the session that a token stands for, or false if the token is not
// genuine. It is for servers of another kind, as of gRPC or websockets, which then call Update or Peek.
// Only they tell whether the session exists. If these Sessions use cookies, the token is the value of a
// cookie.
func (s *Sessions) ID(token string) (string, bool) {
	id := s.cookies.idOf(token)
	return id, id != ""
}

// idOf returns the public id that a value stands for, or "".
func (c *cookies) idOf(value string) string {
	check := c.checkers.Get().(*checker)
	defer c.checkers.Put(check)
	id, _ := check.verify(value)
	return id
}

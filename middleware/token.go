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
// With Options.Token the client is not a browser but a program that keeps the session's token. The token is the
// value that a cookie would have. It is verified by the same rules, and dies with its ID. The differences exist
// because no header takes the token to the client:
//
//   - The handler sends the token that Sessions.Token returns after the commit. If a session would begin or get
//     a new ID at the end of the handler, the commit fails: the handler cannot send the token any more, so no
//     client could open that session.
//   - A session may begin or get a new ID even after the response has begun: a websocket handler can call Renew
//     and send the token itself.
//   - No request counts as a navigation (see navigates): a program whose token is dead, unknown or
//     missing gets a 401 when it writes, and logs in again.

var (
	errNoTokens = errors.New("middleware: Token is for Sessions with Options.Token: these Sessions use cookies")
	errNotSaved = errors.New("middleware: Token before the session is saved: call Commit first")
	errNoToken  = errors.New("middleware: Token without a stored session: " +
		"the request has no session, or has ended it")
	errNobody = errors.New("middleware: the handler has ended, so nothing can give the client a new token: " +
		"call Commit and Sessions.Token if a session begins or gets a new ID, " +
		"and respond with 401 to a request that must have a session")
	errNoAccess   = errors.New("middleware: a write without the token of a session")
	errAttributes = errors.New("middleware: Options.Token is set, so there is no cookie: " +
		"of Options.Cookie only Name may be set")
)

// Bearer returns the token of a request's Authorization header, by RFC 6750, or "". It is for Options.Token. The
// header must have the scheme Bearer in upper or lower case, one space or more, and a token of letters, digits
// and -._~+/ with any number of = at its end. Bearer returns "" if there is more than one such header.
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

// isToken68 reports whether s is a token68 of RFC 9110, which RFC 6750 calls a b64token.
func isToken68(s string) bool {
	own := strings.TrimRight(s, "=")
	return own != "" && !strings.ContainsFunc(own, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("-._~+/", c)
	})
}

// Token returns the token of the request's session, for a handler that gives it to its client: see
// Options.Token. Call it after a Session.Commit that has begun the session or given it a new ID, or after
// the response has begun. If the ID stays, Token returns the token that the request came with. It signs the
// token anew if Remember has moved the session's end beyond the end of the signature, or if an older key of
// Options.Keys has signed the token.
//
// A response for which Token is called before its first byte is not cached.
//
// Token fails if the session is not saved yet, is open again, or its commit has failed; if there is no
// session; and if s uses cookies.
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
	case rq.session == nil, !rq.origin.isStored():
		return "", errNoToken
	case rq.cookie(rq.role) == nil:
		if id, ok := s.ID(came); !ok || id != rq.identity.knownID() {
			return "", errNoToken // the handler has changed the header with the token
		}
		_, own := rq.identity.stored()
		cookie, err := s.cookies.reissue(rq.role, came, own)
		if err != nil {
			return "", err
		}
		rq.changes().cookies[rq.role] = cookie // so that the response is not cached
	}
	return rq.cookie(rq.role).Value, nil
}

// ID returns the public ID of the session that a token stands for, or false if the token is not genuine. It is
// for servers of another kind, such as gRPC or websocket servers, which then call Update or Peek. Only Update
// and Peek tell whether the session exists. If s uses cookies, the token is the value of a cookie.
func (s *Sessions) ID(token string) (string, bool) {
	id, _ := s.cookies.idOf(token)
	return id, id != ""
}

// idOf returns the public ID that a token stands for, or the value of a cookie of either role, or "".
func (c *cookies) idOf(value string) (id string, result verified) {
	check := c.checkers.Get().(*checker)
	defer c.checkers.Put(check)
	id, result = check.verify(member, value)
	if id == "" && c.token == nil {
		id, result = check.verify(guest, value)
	}
	return id, result
}

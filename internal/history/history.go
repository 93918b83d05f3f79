// Package history records the requests of many clients of the demo to sessions, and checks that they are
// linearizable: is there an order of the requests that agrees with when each began and ended, and in
// which every response is right?
//
// Only what a client can see counts. A request without a response may have taken effect at any time after
// it was sent, or never. The same holds for a 503.
//
// The model of a session is a number that each write increments, and the cookie that opens the session,
// if any does. So the number is also a version. A lost update, a stale write and a revived session all
// lead to a number or a response that no order explains. Sessions are independent, so each has its own
// history, in which the number of another session is wrong.
//
// With a cookie that no longer opens anything, a login and a write must begin another session. If a login has
// moved the cookie's ID, only a write that is a navigation must, and any other is refused; so is a login, which
// is a Renew here, if the cookie was a member's. No other request may set a cookie.
package history

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// The kinds of requests.
const (
	Begin  = "begin"
	Write  = "incr"
	Read   = "count"
	Login  = "login"
	Logout = "logout"
)

// An Operation is one request.
type Operation struct {
	What     string
	Cookie   string // that was sent
	Navigate bool   // a Write by a link, not by a script
	Reopens  bool   // a Write whose handler opens its session again, and cannot begin another then

	overtaken bool // another request may have ended the session, or moved its ID, while this one had it
}

// An Answer is the response to an Operation, as far as the client knows.
type Answer struct {
	Known  bool   // false: there was no response, or a 503
	Why    string // the error or the 503, if it is not known
	Status int    // of HTTP
	N      int    // the number, for Write and Read
	Cookie string // a new cookie of the same session
	Anew   bool   // it has begun another session, which has only its own write
}

// state is the state of one session.
type state struct {
	cookie string // "": no cookie opens it
	over   string // the cookie that has opened it until a logout
	n      int
	wild   bool // nothing is known before the first response with a number
}

// model is the specification of a session, one request after the other.
func model(begin state) porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{begin} },
		Step: func(before, input, output any) []any {
			return step(before.(state), input.(Operation), output.(Answer))
		},
		Equal:             func(a, b any) bool { return a == b },
		DescribeOperation: func(input, output any) string { return describe(input.(Operation), output.(Answer)) },
	}).ToModel()
}

// step returns the possible states of a session after a request, and none if the response is wrong. With
// a dead cookie the session is empty, and stays as it is.
func step(s state, op Operation, got Answer) []any {
	if s.wild {
		return learn(s, op, got)
	}
	if op.What == Begin {
		return when(got.Known && got.Cookie != "", state{cookie: got.Cookie})
	}
	alive := s.cookie != "" && (op.Cookie == s.cookie || op.Cookie == someones)
	if !alive {
		return s.withDeadCookie(op, got)
	}
	written, ended, moved := state{cookie: s.cookie, n: s.n + 1}, state{over: s.cookie, n: s.n}, state{n: s.n}
	switch {
	case op.What == Write && got.Known:
		return when(got == Answer{Known: true, Status: http.StatusOK, N: written.n}, written)
	case op.What == Write:
		return []any{s, written}
	case op.What == Read:
		return when(!got.Known || got == Answer{Known: true, Status: http.StatusOK, N: s.n}, s)
	case op.What == Login && got.Known:
		return when(got.Status == http.StatusNoContent && got.Cookie != "" && !got.Anew, state{cookie: got.Cookie, n: s.n})
	case op.What == Logout && got.Known:
		return when(got.Status == http.StatusNoContent, ended)
	case op.What == Logout:
		return []any{s, ended}
	default: // a login without a response ends the session for all clients, too
		return []any{s, moved}
	}
}

// withDeadCookie is step for a request with a dead cookie, or one whose session was ended while the request had it.
func (s state) withDeadCookie(op Operation, got Answer) []any {
	right := !got.Known || got == s.dead(op) || (op.Reopens || op.overtaken) && got == Answer{Known: true, Status: http.StatusConflict}
	if op.What == Logout && op.Cookie != s.over && isMembers(op.Cookie) { // it ends what the session has become
		return when(right, state{over: cmp.Or(s.cookie, s.over), n: s.n})
	}
	return when(right, s)
}

// dead returns the response to a request with a dead cookie.
func (s state) dead(op Operation) Answer {
	switch moved := op.Cookie != s.over; {
	case op.What == Read:
		return Answer{Known: true, Status: http.StatusOK}
	case op.What == Logout:
		return Answer{Known: true, Status: http.StatusNoContent}
	case op.What == Login && !(moved && isMembers(op.Cookie)):
		return Answer{Known: true, Status: http.StatusNoContent, Anew: true}
	case op.What == Write && (op.Navigate || !moved):
		return Answer{Known: true, Status: http.StatusOK, Anew: true}
	default:
		return Answer{Known: true, Status: http.StatusConflict}
	}
}

// isMembers reports whether a cookie is that of a session that somebody has logged in to.
func isMembers(cookie string) bool {
	name, _, _ := strings.Cut(cookie, "=")
	return strings.HasSuffix(name, "-login")
}

// learn is the step of a session whose history begins in the middle.
func learn(s state, op Operation, got Answer) []any {
	if got.Known && got.Status == http.StatusOK && got.N > 0 {
		return []any{state{cookie: op.Cookie, n: got.N}}
	}
	return []any{s}
}

func when(right bool, after state) []any {
	if right {
		return []any{after}
	}
	return nil
}

func describe(op Operation, got Answer) string {
	what := op.What
	if op.Navigate {
		what += ", by a link"
	}
	text := fmt.Sprintf("%-6s with %-8s -> ", what, mark(op.Cookie))
	switch {
	case !got.Known:
		return text + "no answer"
	case got.Anew:
		return text + fmt.Sprintf("%d, and a session of its own", got.Status)
	case got.Cookie != "":
		return text + fmt.Sprintf("%d, now %s", got.Status, mark(got.Cookie))
	case op.What == Write || op.What == Read:
		return text + fmt.Sprintf("%d: %d", got.Status, got.N)
	default:
		return text + fmt.Sprint(got.Status)
	}
}

// mark is the end of a cookie, enough to tell it from others.
func mark(cookie string) string { return cookie[max(0, len(cookie)-6):] }

// someones is the cookie of a write without a response, if several such writes with different cookies may
// have been the one that took effect.
const someones = "*"

// never is the end of a request without a response.
const never = math.MaxInt64

// entry converts an operation for the checker.
func entry(client int, op Operation, got Answer, call, back time.Duration) porcupine.Operation {
	e := porcupine.Operation{ClientId: client, Input: op, Output: got, Call: int64(call), Return: int64(back)}
	if !got.Known {
		e.Return = never
	}
	return e
}

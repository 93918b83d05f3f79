package middleware

import (
	"net/http"
	"strings"

	"github.com/a2139e8d/latchkey/internal/excerpt"
)

// withoutMethod returns the pattern of a router without its method.
func withoutMethod(pattern string) string {
	if blank := strings.IndexAny(pattern, " \t"); blank >= 0 {
		return strings.TrimLeft(pattern[blank:], " \t")
	}
	return pattern
}

// patternOf returns the pattern that a router has matched, or "" if that is unknown. If an http.ServeMux redirects a CONNECT,
// its pattern is the path, which may be a secret.
func patternOf(r *http.Request) string {
	if r.Method == http.MethodConnect {
		return ""
	}
	return r.Pattern
}

// label tells waiters which request holds the session: the method, and the route's pattern if a router has
// found it. The label has no part of the path, which may be secret, as in the link of a mail.
func (rq *request) label() string {
	if label := rq.sessions.options.Label; label != nil {
		return excerpt.Label(label(rq.base))
	}
	return excerpt.Label(rq.route())
}

// name returns the method and, if it is known, the route.
func (rq *request) name() (method, route string) {
	_, route = rq.identity.known()
	return rq.method(), route
}

// method returns the method. A client may make it up: a long one is cut short, and one that is no word, as may come over
// HTTP/2, is replaced. So it cannot look like a method with the route of another request.
func (rq *request) method() string {
	method := rq.base.Method
	method = method[:min(len(method), 16)]
	if strings.ContainsFunc(method, isNoLetter) {
		return "_OTHER"
	}
	return method
}

func isNoLetter(r rune) bool {
	return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_'
}

// route returns the request's method and route.
func (rq *request) route() string {
	method, route := rq.name()
	if route == "" {
		return method
	}
	return method + " " + route
}

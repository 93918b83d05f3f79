package middleware

import (
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

// label tells waiters which request holds the session: the method, and the route's pattern if a router has
// found it. The label has no part of the path, which may be secret, as in the link of a mail.
func (rq *request) label() string {
	if label := rq.sessions.options.Label; label != nil {
		return excerpt.Label(label(rq.base))
	}
	return excerpt.Label(rq.route())
}

// name returns the method, cut short since a client may have made it up, and the route, if it is known.
func (rq *request) name() (method, route string) {
	method = rq.base.Method
	i := &rq.identity
	i.mu.Lock()
	defer i.mu.Unlock()
	return method[:min(len(method), 16)], i.route
}

// route returns the request's method and route.
func (rq *request) route() string {
	method, route := rq.name()
	if route == "" {
		return method
	}
	return method + " " + route
}

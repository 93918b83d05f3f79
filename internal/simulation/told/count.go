package told

import (
	"time"

	"github.com/a2139e8d/latchkey/middleware"
)

// counts judges that each request that has used a session has one event, which comes last.
func (j *judge) counts() {
	const rule = "a request that uses a session is told once"
	for _, e := range j.Events {
		if _, ok := e.What.(*middleware.RequestEvent); ok && j.byNumber[e.Request] == nil {
			j.broken(rule, nil, "a request is told that nobody has made: %+v", e.What)
		}
	}
	for _, r := range j.requests {
		n := 0
		for _, e := range r.events {
			if _, ok := e.What.(*middleware.RequestEvent); ok {
				n++
			}
			if e.Process != r.Process || e.Life != r.Life {
				j.broken(rule, r, "another process has told of it")
			}
		}
		want := 0
		if len(r.made) > 0 || r.found() || r.Err != nil || r.lookedUp() {
			want = 1
		}
		if n != want && !(n == 1 && r.exited()) {
			j.broken(rule, r, "it has %d events, want %d", n, want)
		}
		j.last(r)
	}
}

// exited reports whether an observer has ended the goroutine of a request, so that its error is unknown.
func (r *request) exited() bool { return r.Disturbed && r.Err == nil && r.Status == 0 }

// found reports whether the handler had a session that was stored.
func (r *request) found() bool {
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Open > 0 && !p.New {
			return true
		}
	}
	return false
}

// lookedUp reports whether the handler began although the request had a cookie. It may have begun with a new
// session, since another request has learnt that the cookie's session has ended.
func (r *request) lookedUp() bool { return r.first.Cookie != "" && r.first.Open > 0 }

// last judges that nothing is told of a request after its own event. The exceptions are lost locks, and what
// happens after a commit in the middle: another goroutine tells these at once.
func (j *judge) last(r *request) {
	if r.event == nil || len(r.Parts) > 1 && !r.last.Again || r.early() {
		return
	}
	over := time.Duration(0)
	for _, e := range r.events {
		switch what := e.What.(type) {
		case *middleware.RequestEvent:
			over = e.At
		case *middleware.SessionEvent:
			if over > 0 && what.What != "lost" {
				j.broken("a request's event is its last", r, "%s %s is told behind it", what.What, what.How)
			}
		case *middleware.ExchangeEvent:
			if over > 0 {
				j.broken("a request's event is its last", r, "an exchange is told behind it")
			}
		}
	}
}

// early reports whether the handler commits before it returns.
func (r *request) early() bool {
	for i := range r.Parts {
		if r.Parts[i].Durable > 0 {
			return true
		}
	}
	return false
}

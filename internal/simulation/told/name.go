package told

import (
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
)

// name judges what a request's event says about the request, and about its session.
func (j *judge) name(r *request) {
	const rule = "the event of a request names it"
	e := r.event
	method, label, mode := http.MethodPost, http.MethodPost, middleware.Exclusive
	switch {
	case r.Job:
		method, label = "", "Update"
	case r.first.Optimistic:
		method, label, mode = http.MethodGet, http.MethodGet, middleware.Optimistic
	case !r.first.Exclusive:
		mode = middleware.ReadOnly
	case r.Lazy:
		mode = middleware.Lazy
	}
	if e.Method != method || e.Label != label || e.Mode != mode || e.Route != "" || e.Passive {
		j.broken(rule, r, "%q %q %v %q %v, want %q, %q, %v", e.Method, e.Label, e.Mode, e.Route, e.Passive, method, label, mode)
	}
	id := r.last.ID
	switch {
	case r.Disturbed || r.Err != nil: // the session that it asked for, or one that it would have begun
		return
	case r.last.SetID != "":
		id = r.last.SetID
	case !r.found() && !e.Began:
		return
	}
	if e.Session != id {
		j.broken(rule, r, "its session is %q, want %q", e.Session, id)
	}
	if e.Bytes == 0 && e.Outcome != "ended" {
		j.broken(rule, r, "the size of its record is not told")
	}
}

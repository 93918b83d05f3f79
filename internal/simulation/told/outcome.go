package told

import (
	"errors"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// outcome judges what a request's event says about its result.
func (j *judge) outcome(r *request) {
	const rule = "the outcome that is told is that of the client"
	e := r.event
	if r.exited() { // perhaps before the handler's end
		return
	}
	switch {
	case (e.Err != nil) != (r.Err != nil):
		j.broken(rule, r, "the error is %v, but that of the client is %v", e.Err, r.Err)
	case (e.Err != nil) != (e.Kind != ""):
		j.broken(rule, r, "the error %v has the kind %q", e.Err, e.Kind)
	case e.Err != nil && middleware.Status(e.Err) != middleware.Status(r.Err):
		j.broken(rule, r, "the error %v leads to a %d, that of the client is %v", e.Err, middleware.Status(e.Err), r.Err)
	case e.Err != nil && r.Status >= 400 && middleware.Status(e.Err) != r.Status:
		j.broken(rule, r, "the error %v, but the response is a %d", e.Err, r.Status)
	case e.Err == nil && r.Status >= 400:
		j.broken(rule, r, "there is no error, but the response is a %d", r.Status)
	}
	want, began, renewed, loggedIn, ended := r.did()
	if e.Outcome != want {
		j.broken(rule, r, "it is %q, want %q", e.Outcome, want)
	}
	if r.Err != nil && !r.late() { // a part of it may have been done
		began, renewed, loggedIn, ended = e.Began, e.Renewed, e.LoggedIn, e.Ended
	}
	if ended && j.mayBeEnded(r) {
		ended = e.Ended
	}
	if e.Began != began || e.Renewed != renewed || e.LoggedIn != loggedIn || e.Ended != ended {
		j.broken(rule, r, "began %v, renewed %v, logged in %v, ended %v; want %v, %v, %v, %v",
			e.Began, e.Renewed, e.LoggedIn, e.Ended, began, renewed, loggedIn, ended)
	}
	if e.Runs != r.Runs {
		j.broken(rule, r, "the handler ran %d times, told are %d", r.Runs, e.Runs)
	}
}

// mayBeEnded reports whether the session that a logout had may have ended before: by another, at the end of its lifetime, or
// because Redis has lost it.
func (j *judge) mayBeEnded(r *request) bool {
	return j.ends[r.last.ID] > 0 || !j.Strict || j.mayBeTooOld(r.event.Done)
}

// late reports whether the handler has tried to change the session after the commit.
func (r *request) late() bool { return errors.Is(r.Err, session.ErrClosed) }

// did returns what the handler has done to the session.
func (r *request) did() (outcome string, began, renewed, loggedIn, ended bool) {
	p := r.last
	switch {
	case r.Err != nil && !r.late():
		return "failed", false, false, false, false
	case r.Panics:
		return "abandoned", false, false, false, false
	case p.Destroys && p.New:
		outcome, ended = "ended", r.event.Ended // there was nothing to end, unless an ID that has moved has become a session
	case p.Destroys:
		outcome, ended = "ended", true
	case p.Effect == history.Nothing && p.New, p.Effect == history.Nothing && !p.Exclusive:
		outcome = "unchanged"
	case p.Effect == history.Nothing:
		outcome = "touched"
	case p.New:
		outcome, began, loggedIn = "began", true, p.LogsIn != ""
	case p.Effect == history.Renew:
		outcome, renewed, loggedIn = "renewed", true, p.LogsIn != ""
	default:
		outcome = "saved"
	}
	if r.Err != nil {
		outcome = "failed" // the late change
	}
	return outcome, began, renewed, loggedIn, ended
}

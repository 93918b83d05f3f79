package world

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/internal/simulation/plan"
)

// A response is an http.ResponseWriter, and the response that the client gets.
type response struct {
	call   *call
	header http.Header
	status int
	at     time.Duration // of the header
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.at = status, w.call.world.now()
	}
}

func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return len(p), nil
}

func (w *response) Flush() {}

// request sends a request, and waits for its response.
func (w *World) request(r plan.Request) {
	defer w.requests.Done()
	if !r.Action.Opens() {
		w.ends(r)
		return
	}
	w.mu.Lock()
	p := w.present[r.Process]
	v := w.visitors[r.Visitor]
	if p.dead {
		w.mu.Unlock()
		return // no process listens
	}
	job := r.Action == plan.Update
	if job && v.latest == "" {
		w.mu.Unlock()
		return // there is no session yet
	}
	seen := &history.Request{Number: r.Number, Process: r.Process, Life: p.life, Title: title(r),
		Began: w.now(), Asked: w.now(), Faulty: faulty(r), Quiet: job,
		Exclusive: r.Mode != plan.ReadOnly && r.Mode != plan.Optimistic, Optimistic: r.Mode == plan.Optimistic,
		Anew: !job, Navigates: navigates(r)}
	if seen.Cookie = v.latest; !job {
		seen.Member, seen.Guest, seen.Cookie = v.member.id, v.guest.id, v.first()
	}
	w.seen[r.Number] = seen
	c := &call{Request: r, world: w, process: p, seen: seen}
	w.calls = append(w.calls, c)
	w.noteLocked(c, "asks: "+seen.Title, seen.Cookie, nil)
	w.mu.Unlock()

	ctx := context.WithValue(context.Background(), callKey{}, c)
	ctx, leave := context.WithCancel(ctx)
	if r.Leave > 0 && r.Deadline {
		ctx, leave = context.WithTimeout(ctx, r.Leave)
	} else if r.Leave > 0 {
		defer time.AfterFunc(r.Leave, leave).Stop()
	}
	defer leave()
	if r.Leave > 0 {
		seen.Leaves = seen.Began + r.Leave
	}
	answer := &response{call: c, header: make(http.Header)}
	c.answer = answer
	handle := func() {
		if job {
			c.update(ctx, v.latest, answer)
		} else {
			c.serve(ctx, v.header(), answer)
		}
	}
	if w.plan.Observer == plan.Exiting {
		aside(handle) // an observer ends the goroutine
	} else {
		handle()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.conclude(answer)
	w.keep(c, answer)
}

// serve makes the process handle the request.
func (c *call) serve(ctx context.Context, cookies string, answer *response) {
	r := (&http.Request{Method: "POST", URL: &url.URL{Path: "/" + string(c.Action)}, Header: make(http.Header), Body: http.NoBody}).WithContext(ctx)
	if c.Mode == plan.Optimistic {
		r.Method = "GET"
	}
	if navigates(c.Request) {
		r.Header.Set("Sec-Fetch-Mode", "navigate")
	}
	if cookies != "" {
		r.Header.Set("Cookie", cookies)
	}
	defer func() {
		if r := recover(); r != nil && r != intended && r != http.ErrAbortHandler {
			panic(r)
		}
	}()
	c.process.handler.ServeHTTP(answer, r)
}

func title(r plan.Request) string {
	text := string(r.Action)
	if r.Action == plan.Login {
		text += " as " + userName(r.User)
	}
	if r.Mode != plan.Exclusive {
		text += ", " + string(r.Mode)
	}
	if navigates(r) {
		text += ", as a page"
	}
	if r.Large {
		text += ", large"
	}
	if r.Leave > 0 {
		text += fmt.Sprintf(", leaves after %v", r.Leave)
	}
	return text
}

// navigates reports whether the browser goes to another page. It is not drawn, so that each seed draws
// the same as before there were navigations.
func navigates(r plan.Request) bool { return r.Number%3 == 0 }

// renews reports whether the handler gives the session a new ID.
func renews(r plan.Request) bool {
	return r.Action == plan.Renew || r.Action == plan.Login || r.Action == plan.EndOthers && r.Number%4 == 2
}

// faulty reports whether the handler makes a mistake.
func faulty(r plan.Request) bool {
	writes := r.Action != plan.Look
	return r.Action == plan.Unencodable || r.Action == plan.TooLarge || r.Action == plan.Late || r.Mode == plan.ReadOnly && writes
}

// conclude records the result of a request.
func (c *call) conclude(answer *response) {
	seen := c.seen
	seen.Done = c.world.now()
	seen.End = seen.Done
	seen.Status = answer.status
	if answer.status > 0 {
		seen.End = answer.at
	}
	seen.Answered = seen.End
	seen.Cause = causeOf(c.failure)
	seen.Why = why(c.failure)
	if seen.Cause == history.Gone && seen.Open == 0 { // Reopen and Update return this
		seen.Open, seen.New, seen.Anew = seen.End, true, false
	}
	if c.failure != nil && seen.Open == 0 && strings.Contains(c.failure.Error(), recordKey(seen.Guest)) {
		seen.Cookie = seen.Guest // the error is for the session that it waited for
	}
	dead := c.process.dead
	if dead && c.process.died <= seen.End {
		seen.Status = 0 // no client gets it
	}
	seen.Durable = c.durable
	switch {
	case c.durable > 0 && !(dead && c.process.died <= c.durable):
		seen.Outcome, seen.End = history.Answered, c.durable
	case c.panics:
		seen.Outcome, seen.Cause = history.Refused, history.Panicked
	case seen.Open == 0 && !(answer.status == http.StatusOK && c.failure == nil):
		seen.Outcome = history.Refused
	case dead && c.process.died <= seen.End:
		seen.Outcome, seen.Cause = history.Unknown, history.Crashed
	case answer.status == http.StatusOK && c.failure == nil:
		seen.Outcome = history.Answered
	default:
		seen.Outcome = c.doubt()
	}
	c.world.noteLocked(c, fmt.Sprintf("is answered: %d %v%s", answer.status, []string{"unknown", "done", "refused"}[seen.Outcome], seen.Why), "", nil)
}

// doubt returns the outcome of a commit that failed: it may have been done.
func (c *call) doubt() history.Outcome {
	switch c.seen.Cause {
	case history.Timeout, history.TooMany, history.Cancelled:
		if !c.seen.Optimistic { // otherwise it was refused without the lock, and had to acquire it
			return history.Unknown
		}
		fallthrough
	case history.Lost, history.Conflict, history.Crowded:
		if c.world.plan.Any(plan.DoubleCommands) {
			return history.Unknown // the first copy of the command may have succeeded
		}
		return history.Refused
	case history.Gone:
		if c.world.plan.Any(plan.DoubleCommands) && !c.seen.New {
			return history.Unknown
		}
		return history.Refused
	case history.Mistake:
		return history.Refused
	}
	return history.Unknown
}

func why(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

func (c *call) note(what, id string, list []int) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.world.noteLocked(c, what, id, list)
}

// noteLocked adds to the trace.
func (w *World) noteLocked(c *call, what, id string, list []int) {
	text := id
	if list != nil {
		text += fmt.Sprint(list)
	}
	w.trace.add(event{at: w.now(), what: what, process: c.process.number, request: c.seen.Number, text: text})
}

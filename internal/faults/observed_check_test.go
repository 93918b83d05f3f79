package faults

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// judgeEvents ends the processes, and compares what their observers were told with what the visitors saw.
func (a *observed) judgeEvents() {
	a.Helper()
	told := a.toldRequests()
	bySession := make(map[string][]*toldRequest)
	counts := make(map[string]int)
	for _, r := range told {
		a.once(r)
		if r.RequestEvent == nil {
			continue
		}
		counts[r.Outcome]++
		a.agrees(r)
		a.behind(r, told)
		bySession[r.Session] = append(bySession[r.Session], r)
	}
	for id, rs := range bySession {
		a.inOrder(id, rs)
		a.alone(id, rs)
	}
	if most := a.pairs/1000 + 1; a.early > most {
		a.Errorf("%d of %d times are in the wrong order", a.early, a.pairs)
	}
	for _, outcome := range []string{"saved", "unchanged", "began", "renewed", "ended", "failed"} {
		happened(a.T, "a request had the outcome "+outcome, counts[outcome], 1)
	}
	a.seen = fmt.Sprintf("%d requests, each with its event if it was answered", len(told))
}

// once asserts that a request has at most one RequestEvent, and exactly one if it was answered. An unanswered
// request also has one, unless its process was killed or its client has left: then it may never have arrived.
func (a *observed) once(r *toldRequest) {
	a.Helper()
	must := r.status != 0 || !r.canceled && r.process.Err() == nil
	if r.events > 1 || must && r.events == 0 {
		a.Errorf("request %s, %s, status %d: %d events", r.number, r.path, r.status, r.events)
	}
}

// tick is how wrong the times of a request may be. If a process loses its processor between reading the wall
// clock and the monotonic clock, all later times of the request are too early by that delay.
const tick = 50 * time.Millisecond

// agrees asserts that an event agrees with what the client saw.
func (a *observed) agrees(r *toldRequest) {
	a.Helper()
	wrong := func(what string, is any) {
		a.Errorf("request %s, %s, status %d: %s: %v: %+v", r.number, r.path, r.status, what, is, *r.RequestEvent)
	}
	label := r.path // unless it has asked for the lock
	if len(r.Holds) > 0 {
		label = r.number
	}
	if name := r.Method + " " + r.Route; name != r.path || r.Label != label {
		wrong("names", name)
	}
	if r.Arrived.Before(r.sent.Add(-tick)) || r.Done.Before(r.Arrived) || r.status != 0 && r.Done.After(r.back.Add(tick)) {
		wrong("times beside those of the client", []time.Time{r.sent, r.back})
	}
	if took := r.Done.Sub(r.Arrived); r.Waited+r.Held > took {
		wrong("waits and holds for longer than it took", took)
	}
	if r.RoundTrips != len(r.exchanges) {
		wrong("exchanges", len(r.exchanges))
	}
	if began := min(r.began, 1) == 1; r.began > 1 || began != r.Began {
		wrong("sessions that began", r.began)
	}
	switch {
	case r.status >= 400 && (r.Outcome != "failed" || r.Kind == ""):
		wrong("outcome of a failure", r.Outcome)
	case r.status > 0 && r.status < 400 && !slices.Contains(outcomes[r.path], r.Outcome):
		wrong("outcome", r.Outcome)
	}
}

// outcomes are the possible outcomes of requests without an error. If the cookie is dead, the request begins a
// session, or needs none.
var outcomes = map[string][]string{
	"POST /incr":   {"saved", "began"},
	"POST /reset":  {"saved", "began"},
	"POST /login":  {"renewed", "began"},
	"POST /logout": {"ended"},
	"GET /count":   {"unchanged"},
}

// behind asserts that a request waited behind one that was sent before the wait ended, and that a holder in
// another process is reported as such.
func (a *observed) behind(r *toldRequest, all map[string]*toldRequest) {
	a.Helper()
	if r.Behind == "" {
		return
	}
	before := all[r.Behind]
	if before == nil || before == r || before.sent.After(r.Holds[0].Asked.Add(r.Waited+tick)) || before.RequestEvent != nil && before.process != r.process && r.BehindProcess == "" {
		a.Errorf("request %s waited behind %q of process %q", r.number, r.Behind, r.BehindProcess)
	}
}

// inOrder asserts that requests have acquired a session in the order of the numbers that they counted.
func (a *observed) inOrder(id string, rs []*toldRequest) {
	a.Helper()
	type counted struct {
		*toldRequest
		n int
	}
	var all []counted
	for _, r := range rs {
		if n, err := strconv.Atoi(r.body); err == nil && r.path == "POST /incr" && r.Outcome == "saved" && r.status == http.StatusOK {
			all = append(all, counted{r, n})
		}
	}
	slices.SortFunc(all, func(x, y counted) int { return cmp.Compare(x.n, y.n) })
	for i := 1; i < len(all); i++ {
		if x, y := all[i-1], all[i]; x.n == y.n || x.n+1 == y.n && !a.ordered(x.Acquired, y.Acquired) {
			a.Errorf("session %s: request %s counted %d, and acquired it at %v; %s counted %d, at %v", id, x.number, x.n, x.Acquired, y.number, y.n, y.Acquired)
		}
	}
}

// ordered reports whether a time is before another one. Times that cannot be compared because of tick count as
// ordered. judgeEvents checks that times in the wrong order are few.
func (a *observed) ordered(first, second time.Time) bool {
	a.pairs++
	if second.Before(first) {
		a.early++
	}
	return first.Before(second.Add(tick))
}

// alone asserts that no other process acquired a session while a request held it: from the reply to the request's
// take until its commit was sent.
func (a *observed) alone(id string, rs []*toldRequest) {
	a.Helper()
	var taken []*toldRequest
	for _, r := range rs {
		if len(r.Holds) > 0 && !r.Acquired.IsZero() && r.Outcome == "saved" {
			taken = append(taken, r)
		}
	}
	slices.SortFunc(taken, func(x, y *toldRequest) int { return x.Acquired.Compare(y.Acquired) })
	var last *toldRequest // the request that held the session longest
	for _, r := range taken {
		if last != nil && last.process != r.process && !a.ordered(last.saves(), r.Acquired) {
			a.Errorf("session %s: request %s had it from %v until %v, and %s of another process acquired it at %v", id, last.number, last.Acquired, last.saves(), r.number, r.Acquired)
		}
		if last == nil || last.saves().Before(r.saves()) {
			last = r
		}
	}
}

// saves returns when the request first sent its commit: Redis may have executed that one, even if it was sent
// again. If another request stored its changes, saves returns when it acquired the session.
func (r *toldRequest) saves() time.Time {
	for _, x := range r.exchanges { // in their order
		if x.Holds > 0 && x.Began.After(r.Acquired) {
			return x.Began
		}
	}
	return r.Acquired
}

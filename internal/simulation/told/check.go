// Package told judges what observers were told, by what clients and handlers have seen, and by what went through the
// client of Redis. It knows nothing of how the events came about.
//
// Fake time makes nearly all rules exact: what happens without waiting happens in the same nanosecond.
//
//   - Count (count.go): a request that has used a session has one event, and any other request has none. A process that
//     is killed tells nothing any more. The simulation lets the goroutines of such a process end, so here even they tell
//     all.
//   - Names (name.go): the event names the request and its session.
//   - Outcomes (outcome.go): the event says what the handler has done, and which error the client got.
//   - Waits (waits.go): its times are those at which the request was sent, the handler began, the session was
//     committed, and the response was complete. Who waited in vain is told so.
//   - Lines (line.go): how many stood before the request, and whether somebody held the session.
//   - Order (order.go): requests of one process acquire a session in the order in which their writes stand in it.
//   - Exchanges (exchange.go): each exchange with Redis is told once, as that of the request that has made it.
//   - Lives (life.go): what happens to a session is told once, by the process that has done it.
//   - Locks (lock.go): whoever fails since its lock is lost was told so, and a lock that is extended has a holder.
package told

import (
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/middleware"
)

// Second is the difference of the numbers of two parts of a request.
const Second = 10_000_000

// A Mark says which process something belongs to, and which request.
type Mark struct {
	Process, Life int
	Request       int // 0: none
}

// An Event is what an observer was told.
type Event struct {
	Mark
	At   time.Duration
	What middleware.Event
}

// An Exchange was made by the client of a process.
type Exchange struct {
	Mark
	Began, Ended time.Time
	Command      string // the first one
	Commands     int
}

// A Request is one that a client has sent, or a job.
type Request struct {
	Mark
	Parts  []history.Request // more than one if its handler reopens the session, or runs again
	Err    error             // what it got for an error of its session
	Status int               // of the response that the process has made; 0: none
	Job    bool
	Lazy   bool
	Panics bool // its handler panicked, before a commit
	Runs   int  // of its handler
	// Disturbed: a bad observer has blocked it, or ended its goroutine.
	Disturbed bool
}

// A Story is all that is known of a run.
type Story struct {
	Began     time.Time
	TTL       time.Duration
	Lifetime  time.Duration // 0: it ends no session
	Strict    bool          // there were no faults
	Requests  []Request
	Endings   []history.Ending
	Events    []Event
	Exchanges []Exchange
}

// Check returns the violations.
func Check(s Story) []history.Violation {
	j := newJudge(s)
	j.counts()
	for _, r := range j.requests {
		if r.event != nil {
			j.name(r)
			j.outcome(r)
			j.waits(r)
			j.line(r)
		}
	}
	j.order()
	j.exchanges()
	j.lives()
	j.locks()
	return j.violations
}

// A request is a Request, with what was told of it.
type request struct {
	*Request
	first, last *history.Request
	events      []Event
	event       *middleware.RequestEvent // nil: none
	exchanges   []*middleware.ExchangeEvent
	sessions    []*middleware.SessionEvent
	made        []Exchange
}

type judge struct {
	Story
	requests   []*request
	byNumber   map[int]*request
	ends       map[string]int    // how often the end of a session is told, by its ID
	moved      map[string]string // the new ID of a session
	violations []history.Violation
}

func newJudge(s Story) *judge {
	j := &judge{Story: s, byNumber: make(map[int]*request), ends: make(map[string]int), moved: make(map[string]string)}
	for i := range s.Requests {
		r := &request{Request: &s.Requests[i]}
		r.first, r.last = &r.Parts[0], &r.Parts[len(r.Parts)-1]
		j.requests, j.byNumber[r.Request.Request] = append(j.requests, r), r
	}
	for _, e := range s.Events {
		if x, ok := e.What.(*middleware.SessionEvent); ok {
			switch x.What {
			case "ended":
				j.ends[x.Session]++
			case "renewed":
				j.moved[x.Session] = x.To
			}
		}
		r := j.byNumber[e.Request]
		if r == nil {
			continue
		}
		r.events = append(r.events, e)
		switch what := e.What.(type) {
		case *middleware.RequestEvent:
			if r.event == nil {
				r.event = what
			}
		case *middleware.ExchangeEvent:
			r.exchanges = append(r.exchanges, what)
		case *middleware.SessionEvent:
			r.sessions = append(r.sessions, what)
		}
	}
	for _, x := range s.Exchanges {
		if r := j.byNumber[x.Request]; r != nil {
			r.made = append(r.made, x)
		}
	}
	return j
}

// since returns the time since the run began; 0: never.
func (j *judge) since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return t.Sub(j.Began)
}

// broken adds a violation.
func (j *judge) broken(rule string, r *request, format string, args ...any) {
	v := history.Violation{Rule: rule, Text: fmt.Sprintf(format, args...)}
	if r != nil {
		v.Text = fmt.Sprintf("#%d (%s): %s", r.first.Number, r.first.Title, v.Text)
		v.Requests = append(v.Requests, r.first.Number)
		for _, id := range []string{r.first.Member, r.first.Cookie, r.last.SetID} {
			if id != "" {
				v.Sessions = append(v.Sessions, id)
			}
		}
	}
	j.violations = append(j.violations, v)
}

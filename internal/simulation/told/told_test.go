package told

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

var began = time.Unix(1e9, 0)

const milli = time.Millisecond

func at(ms int) time.Time { return began.Add(time.Duration(ms) * milli) }

// A tale is the story of requests of one process. #1 has begun the session S before. #2 asks for S at 10 ms, has
// it from 12 to 15 ms, and gets its response at 17 ms. #3 asks at 14 ms, and gets S from #2 at 15 ms.
type tale struct {
	Story
	second, third *Request
	told, follows *middleware.RequestEvent
	take, commit  *middleware.ExchangeEvent
}

func newTale() *tale {
	t := &tale{Story: Story{Began: began, TTL: time.Hour, Strict: true}}
	write := func(number, asked, open, seal, end int, saw ...int) Request {
		ms := func(n int) time.Duration { return time.Duration(n) * milli }
		p := history.Request{Number: number, Title: "append", Guest: "S", Cookie: "S", ID: "S", Exclusive: true, Saw: saw,
			Effect: history.Write, Wrote: append(slices.Clone(saw), number), Outcome: history.Answered, Status: 200, Anew: true,
			Began: ms(asked), Asked: ms(asked), Open: ms(open), Seal: ms(seal), End: ms(end), Answered: ms(end), Done: ms(end)}
		return Request{Mark: Mark{Request: number}, Parts: []history.Request{p}, Status: 200, Runs: 1}
	}
	t.Requests = []Request{write(2, 10, 12, 15, 17, 1), write(3, 14, 15, 17, 19, 1, 2)}
	t.second, t.third = &t.Requests[0], &t.Requests[1]
	event := func(arrived, acquired, committed, held int) *middleware.RequestEvent {
		return &middleware.RequestEvent{Session: "S", Label: "POST", Method: "POST", Arrived: at(arrived), Acquired: at(acquired), Committed: at(committed),
			Done: at(committed), Waited: at(acquired).Sub(at(arrived)), Held: time.Duration(held) * milli, Runs: 1, Bytes: 100, Outcome: "saved"}
	}
	t.told, t.follows = event(10, 12, 17, 5), event(14, 15, 19, 4)
	t.told.RoundTrips = 2
	t.follows.Passed, t.follows.Behind, t.follows.RoundTrips = true, "POST", 0
	t.take = &middleware.ExchangeEvent{Script: "take", Command: "EVALSHA", Commands: 1, Began: at(10), Took: 2 * milli}
	t.commit = &middleware.ExchangeEvent{Script: "commit", Command: "EVALSHA", Commands: 1, Began: at(15), Took: 2 * milli}
	for _, x := range []*middleware.ExchangeEvent{t.take, t.commit} {
		t.Exchanges = append(t.Exchanges, Exchange{t.second.Mark, x.Began, x.Began.Add(x.Took), x.Command, x.Commands})
		t.tell(17, 2, x)
	}
	t.tell(17, 2, t.told)
	t.tell(19, 3, t.follows)
	return t
}

// tell adds an event.
func (t *tale) tell(ms, request int, what middleware.Event) {
	t.Events = append(t.Events, Event{Mark{Request: request}, time.Duration(ms) * milli, what})
}

// forget removes an event.
func (t *tale) forget(what middleware.Event) {
	t.Events = slices.DeleteFunc(t.Events, func(e Event) bool { return e.What == what })
}

// happened adds an event of S at a time.
func (t *tale) happened(ms, request int, what, how string) *middleware.SessionEvent {
	e := &middleware.SessionEvent{Session: "S", What: what, How: how, Time: at(ms)}
	t.tell(ms, request, e)
	return e
}

// These are stories that break each rule, and stories that only look wrong.
func TestCheck(t *testing.T) {
	const once = "what happens to a session is told once"
	for name, tt := range map[string]struct {
		change func(t *tale)
		broken string // the rule; "": none is
	}{
		"as it was":                    {func(*tale) {}, ""},
		"an event is missing":          {func(t *tale) { t.forget(t.told) }, "a request that uses a session is told once"},
		"an event is told twice":       {func(t *tale) { t.tell(18, 2, t.told) }, "a request that uses a session is told once"},
		"an event of no request":       {func(t *tale) { t.tell(18, 0, &middleware.RequestEvent{}) }, "a request that uses a session is told once"},
		"an exchange comes last":       {func(t *tale) { t.forget(t.take); t.tell(18, 2, t.take) }, "a request's event is its last"},
		"another method":               {func(t *tale) { t.told.Method = "GET" }, "the event of a request names it"},
		"another session":              {func(t *tale) { t.told.Session = "T" }, "the event of a request names it"},
		"no size":                      {func(t *tale) { t.told.Bytes = 0 }, "the event of a request names it"},
		"another outcome":              {func(t *tale) { t.told.Outcome = "touched" }, "the outcome that is told is that of the client"},
		"an error that did not happen": {func(t *tale) { t.told.Err, t.told.Kind = store.ErrLost, "lost" }, "the outcome that is told is that of the client"},
		"an error that is not told":    {func(t *tale) { t.second.Err, t.second.Status = store.ErrTimeout, 503 }, "the outcome that is told is that of the client"},
		"another status":               {func(t *tale) { t.fails(store.ErrTimeout, "timeout", 500) }, "the outcome that is told is that of the client"},
		"a failure":                    {func(t *tale) { t.fails(store.ErrTimeout, "timeout", 503) }, ""},
		"a failure without a kind":     {func(t *tale) { t.fails(store.ErrTimeout, "", 503) }, "the outcome that is told is that of the client"},
		"a late change": {func(t *tale) {
			t.fails(session.ErrClosed, "late", 500)
			t.told.Committed = at(17)
			t.second.Parts[0].Durable = 17 * milli
		}, ""},
		"a panic":                            {func(t *tale) { t.panics("abandoned") }, ""},
		"a panic that is saved":              {func(t *tale) { t.panics("saved") }, "the outcome that is told is that of the client"},
		"a run too many":                     {func(t *tale) { t.told.Runs = 2 }, "the outcome that is told is that of the client"},
		"began":                              {func(t *tale) { t.told.Began = true }, "the outcome that is told is that of the client"},
		"arrived earlier":                    {func(t *tale) { t.told.Arrived = at(9) }, "the times that are told are those of the request"},
		"acquired later":                     {func(t *tale) { t.told.Acquired = at(13) }, "the times that are told are those of the request"},
		"committed earlier":                  {func(t *tale) { t.told.Committed = at(15) }, "the times that are told are those of the request"},
		"done never":                         {func(t *tale) { t.told.Done = time.Time{} }, "the times that are told are those of the request"},
		"waited for less":                    {func(t *tale) { t.told.Waited-- }, "the times that are told are those of the request"},
		"held for longer":                    {func(t *tale) { t.told.Held++ }, "the times that are told are those of the request"},
		"a longer line":                      {func(t *tale) { t.told.Queue = 1 }, "who was before a request is told"},
		"waited for nobody":                  {func(t *tale) { t.follows.Behind = "" }, "who was before a request is told"},
		"waited for another process":         {func(t *tale) { t.follows.BehindProcess = "vm/1" }, "who was before a request is told"},
		"another order":                      {func(t *tale) { t.third.Parts[0].Saw = []int{1} }, "requests acquire a session in the order of their writes"},
		"two at once":                        {func(t *tale) { t.second.Parts[0].Seal = 16 * milli }, "requests acquire a session in the order of their writes"},
		"an exchange is missing":             {func(t *tale) { t.forget(t.take) }, "each exchange is told once"},
		"an exchange is told twice":          {func(t *tale) { t.tell(18, 0, t.take) }, "each exchange is told once"},
		"an exchange of another request":     {func(t *tale) { t.forget(t.take); t.tell(17, 3, t.take) }, "each exchange is told once"},
		"a shorter exchange":                 {func(t *tale) { t.take.Took-- }, "each exchange is told once"},
		"a round trip too few":               {func(t *tale) { t.told.RoundTrips = 1 }, "a request's exchanges are counted"},
		"a session begins by no request":     {func(t *tale) { t.happened(9, 0, "began", "") }, "what is told has happened"},
		"a session begins a second time":     {func(t *tale) { t.happened(16, 2, "began", "") }, "what is told has happened"},
		"a session ends, but nobody ends it": {func(t *tale) { t.happened(16, 2, "ended", "destroy") }, "what is told has happened"},
		"a session ends twice":               {func(t *tale) { t.happened(30, 0, "ended", "end"); t.happened(31, 0, "ended", "end") }, once},
		"an end that is not told":            {func(t *tale) { t.ends() }, once},
		"an end":                             {func(t *tale) { t.ends(); t.happened(30, 0, "ended", "end") }, ""},
		"a logout": {func(t *tale) {
			t.destroys()
			t.happened(19, 3, "ended", "destroy")
			t.forget(t.follows)
			t.tell(19, 3, t.follows)
		}, ""},
		"a logout that is not told": {func(t *tale) { t.destroys() }, once},
		"a logout of another session": {func(t *tale) {
			t.destroys()
			t.happened(19, 3, "ended", "destroy").Session = "T"
			t.forget(t.follows)
			t.tell(19, 3, t.follows)
		}, once},
		"a logout of an ended session": {func(t *tale) {
			t.ends()
			t.destroys()
			t.happened(18, 0, "ended", "end")
			t.happened(19, 3, "ended", "destroy").Session = "T"
			t.forget(t.follows)
			t.tell(19, 3, t.follows)
		}, ""},
		"the lock is lost":           {func(t *tale) { t.fails(store.ErrLost, "lost", 503) }, "a lock that is lost is told"},
		"the lock is lost, and told": {func(t *tale) { t.fails(store.ErrLost, "lost", 503); t.happened(16, 2, "lost", "lease") }, ""},
		"extended by the holder":     {func(t *tale) { t.happened(14, 0, "extended", "") }, ""},
		"extended by nobody":         {func(t *tale) { t.happened(30, 0, "extended", "") }, "a lock that is extended has a holder"},
		"swept":                      {func(t *tale) { t.happened(30, 0, "swept", "") }, ""},
		"swept in vain":              {func(t *tale) { t.happened(9, 0, "swept", "") }, "a lock that is swept was asked for"},
		"ended while it is open": {func(t *tale) {
			t.ends()
			t.happened(30, 0, "ended", "end")
			t.forget(t.told)
			t.happened(14, 2, "ended_open", "")
			t.tell(17, 2, t.told)
		}, ""},
		"ended while it is open, and told too late": {func(t *tale) {
			t.ends()
			t.happened(30, 0, "ended", "end")
			t.happened(14, 2, "ended_open", "")
		}, "a request's event is its last"},
		"not ended while it is open": {func(t *tale) { t.happened(14, 2, "ended_open", "") }, "a session that ends while it is open has ended"},
		"ended before it is open":    {func(t *tale) { t.happened(11, 2, "ended_open", "") }, "a session that ends while it is open has ended"},
		"handed over, and passed on": {func(t *tale) { t.happened(14, 2, "handed_over", "") }, "who passes a session on is told"},
	} {
		t.Run(name, func(t *testing.T) {
			story := newTale()
			tt.change(story)
			violations := Check(story.Story)
			found := slices.ContainsFunc(violations, func(v history.Violation) bool { return v.Rule == tt.broken })
			if tt.broken == "" && len(violations) > 0 || tt.broken != "" && !found {
				t.Errorf("%v, want %q", violations, tt.broken)
			}
		})
	}
}

// fails makes #2 fail when it commits.
func (t *tale) fails(err error, kind string, status int) {
	t.second.Err, t.second.Status = errors.Join(err), status
	t.second.Parts[0].Outcome = history.Refused
	t.told.Err, t.told.Kind, t.told.Outcome, t.told.Committed = err, kind, "failed", time.Time{}
}

// panics makes the handler of #2 panic, with the outcome that is told.
func (t *tale) panics(outcome string) {
	t.second.Panics, t.second.Status = true, 0
	t.second.Parts[0].Outcome = history.Refused
	t.told.Outcome, t.told.Committed = outcome, time.Time{}
}

// ends makes somebody end S.
func (t *tale) ends() {
	t.Endings = append(t.Endings, history.Ending{Number: 4, ID: "S", Began: 29 * milli, End: 31 * milli, Outcome: history.Answered})
}

// destroys makes #3 a logout.
func (t *tale) destroys() {
	p := &t.third.Parts[0]
	p.Effect, p.Destroys, p.Wrote = history.Destroy, true, nil
	t.follows.Outcome, t.follows.Ended = "ended", true
}

// A session is over if its end is told, also under a later ID, or if another user has logged in with it.
func TestWhatIsOver(t *testing.T) {
	j := &judge{
		ends:  map[string]int{"ended": 1},
		moved: map[string]string{"renewed": "ended", "guest": "ann.S", "ann.S": "ann.T", "ann.T": "bob.S"},
	}
	for id, want := range map[string]bool{"ended": true, "renewed": true, "bob.S": false, "ann.T": true, "ann.S": true, "guest": true, "other": false} {
		if j.over(id) != want {
			t.Errorf("%s is over: %v, want %v", id, !want, want)
		}
	}
	j.moved = map[string]string{"guest": "ann.S", "ann.S": "ann.T"}
	if j.over("guest") {
		t.Error("a session is over although its user still has it")
	}
}

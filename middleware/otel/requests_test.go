package otellatchkey

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
)

// A request that holds its session is counted, and its wait, its hold and its record are measured. Only the hold has
// the route.
func TestRequestThatHoldsItsSession(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, &middleware.RequestEvent{
		Session: "id", Label: "POST /cart", Method: "POST", Route: "/cart/{item}", Mode: middleware.Exclusive,
		Waited: 250 * time.Millisecond, Held: 2 * time.Second, Queue: 3, Behind: "GET /slow", Runs: 1, RoundTrips: 2,
		Bytes: 300, Outcome: "saved",
	})
	same(t, measured(t, reader),
		"latchkey.requests latchkey.mode=exclusive latchkey.outcome=saved sum=1",
		"latchkey.session.wait.duration latchkey.mode=exclusive latchkey.passed=false count=1 sum=0.25",
		"latchkey.session.hold.duration http.route=/cart/{item} latchkey.mode=exclusive latchkey.outcome=saved count=1 sum=2",
		"latchkey.record.size count=1 sum=300")
}

// A request to which the session was passed needs no round trip, and its record is not measured again.
func TestRequestToWhichTheSessionWasPassed(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, &middleware.RequestEvent{
		Mode: middleware.Lazy, Waited: time.Second, Held: time.Second, Passed: true, Runs: 1, Bytes: 300, Outcome: "saved",
	})
	same(t, measured(t, reader),
		"latchkey.requests latchkey.mode=lazy latchkey.outcome=saved sum=1",
		"latchkey.session.wait.duration latchkey.mode=lazy latchkey.passed=true count=1 sum=1",
		"latchkey.session.hold.duration latchkey.mode=lazy latchkey.outcome=saved count=1 sum=1")
}

// A request that only reads has neither waited nor held.
func TestRequestWithoutTheLock(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, &middleware.RequestEvent{Mode: middleware.ReadOnly, Route: "/", Runs: 1, RoundTrips: 1, Bytes: 5, Outcome: "unchanged"},
		&middleware.RequestEvent{Mode: middleware.Optimistic, Route: "/", Runs: 3, Outcome: "saved"})
	same(t, measured(t, reader),
		"latchkey.requests latchkey.mode=read_only latchkey.outcome=unchanged sum=1",
		"latchkey.requests latchkey.mode=optimistic latchkey.outcome=saved sum=1",
		"latchkey.request.reruns sum=2",
		"latchkey.record.size count=1 sum=5")
}

// The kind of a failure is the error.type: of the wait if the request did not get its session.
func TestRequestThatFails(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o,
		&middleware.RequestEvent{Waited: 10 * time.Second, Outcome: "failed", Err: errors.New("…"), Kind: "timeout"},
		&middleware.RequestEvent{Outcome: "failed", Err: errors.New("…"), Kind: "too_many_waiters"},
		&middleware.RequestEvent{Waited: time.Second, Held: time.Second, Outcome: "failed", Err: errors.New("…"), Kind: "too_large"},
		&middleware.RequestEvent{Outcome: "failed", Err: errors.New("of a kind that nobody has named")})
	same(t, measured(t, reader),
		"latchkey.requests error.type=timeout latchkey.mode=exclusive latchkey.outcome=failed sum=1",
		"latchkey.requests error.type=too_many_waiters latchkey.mode=exclusive latchkey.outcome=failed sum=1",
		"latchkey.requests error.type=too_large latchkey.mode=exclusive latchkey.outcome=failed sum=1",
		"latchkey.requests error.type=_OTHER latchkey.mode=exclusive latchkey.outcome=failed sum=1",
		"latchkey.session.wait.duration error.type=timeout latchkey.mode=exclusive latchkey.passed=false count=1 sum=10",
		"latchkey.session.wait.duration latchkey.mode=exclusive latchkey.passed=false count=1 sum=1",
		"latchkey.session.hold.duration latchkey.mode=exclusive latchkey.outcome=failed count=1 sum=1")
}

func TestCookiesThatOpenNoSession(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, &middleware.RequestEvent{Outcome: "began", UnknownKey: 1, Refused: 2, Dead: 3})
	same(t, measured(t, reader),
		"latchkey.requests latchkey.mode=exclusive latchkey.outcome=began sum=1",
		"latchkey.cookie.rejected latchkey.how=unknown_key sum=1",
		"latchkey.cookie.rejected latchkey.how=refused sum=2",
		"latchkey.cookie.rejected latchkey.how=dead sum=3")
}

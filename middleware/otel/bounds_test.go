package otellatchkey

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"go.opentelemetry.io/otel/attribute"
)

// The number of series has a limit, however many sessions, visitors and paths there are, and whatever clients, Redis
// or a mistake put into the events. No ID, label, method, process or text of an error is in any of the series.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{SessionID: true})
	const secret = "visitor-"
	for i := range 100_000 {
		id := fmt.Sprint(secret, i)
		err := errors.New("the text of " + id)
		tell(o,
			&middleware.RequestEvent{
				Session: id, Label: id, Method: id, Behind: id, BehindProcess: id, Err: err, Waited: time.Second, Held: time.Second,
				Mode: middleware.Mode(i), Queue: i, Runs: i, RoundTrips: i, Bytes: i, Outcome: id, Kind: id,
			},
			&middleware.ExchangeEvent{
				Script: id, Command: id, Commands: i, Status: id, Err: err, Sent: i, Received: i, Holds: i, Node: fmt.Sprintf("10.0.%d.%d:6379", i>>8, i&255), Database: id,
			},
			&middleware.ExchangeEvent{Command: "GET", Commands: 1, Database: strconv.Itoa(i)},
			&middleware.SessionEvent{Session: id, What: "lost", How: id, To: id, Err: err},
			&middleware.SessionEvent{Session: id, What: id, How: id, Err: err},
			&middleware.RequestEvent{Outcome: strings.Repeat("x", i%40), Kind: word(i), Held: 1, Route: fmt.Sprintf("/tenant-%d/{page}", i)})
	}
	found := all(t, reader)
	perMetric := make(map[string]int)
	for _, s := range found {
		perMetric[s.metric]++
		if strings.Contains(s.String(), secret) {
			t.Fatalf("an attribute has what names a visitor: %s", s)
		}
	}
	t.Logf("%d series: %v", len(found), perMetric)
	for metric, n := range perMetric {
		if n > mostCombinations+1 {
			t.Errorf("%s has %d series", metric, n)
		}
	}
	if len(found) > 600 {
		t.Errorf("all metrics have %d series", len(found))
	}
}

// word returns a word that could be ours, and there are many of these.
func word(i int) (w string) {
	for ; i > 0; i /= 26 {
		w += string(rune('a' + i%26))
	}
	return w
}

// Combinations beyond the limit are not dropped: the sums stay right.
func TestNothingIsDropped(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	const n = 5 * mostCombinations
	for i := range n { // each is a new combination of allowed words
		if i == mostCombinations { // records all so far: once the SDK has its own series for overflow, it begins no other
			_ = all(t, reader)
		}
		tell(o, &middleware.RequestEvent{
			Held: time.Second, Route: fmt.Sprint("/", i%127), Outcome: word(1 + i%15), Mode: middleware.Exclusive + middleware.Mode(i%4),
		})
	}
	requests, held := make(map[string]float64), make(map[string]float64)
	for _, s := range all(t, reader) {
		switch s.metric {
		case "latchkey.requests":
			requests[s.attributes.Encoded(attribute.DefaultEncoder())] += s.sum
		case "latchkey.session.hold.duration":
			held[s.attributes.Encoded(attribute.DefaultEncoder())] += s.sum
		}
	}
	for what, sums := range map[string]map[string]float64{"requests": requests, "seconds": held} {
		sum := 0.0
		for _, v := range sums {
			sum += v
		}
		if sum != n || len(sums) > mostCombinations+1 {
			t.Errorf("%d series have %v %s, want %d", len(sums), sum, what, n)
		}
	}
	if over := held["otel.metric.overflow=true"]; over != n-mostCombinations {
		t.Errorf("%v s are in the overflow series", over)
	}
}

// An event may be empty, and nothing panics.
func TestEmptyEvents(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{SessionID: true})
	events := []middleware.Event{nil, &middleware.RequestEvent{}, &middleware.ExchangeEvent{}, &middleware.SessionEvent{}}
	tell(o, events...)
	ctx, ended := sampled(t)
	for _, e := range events {
		o.Observe(ctx, e)
	}
	if len(measured(t, reader)) == 0 || len(ended()) == 0 {
		t.Error("nothing is measured, or there is no span")
	}
}

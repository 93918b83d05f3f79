package otellatchkey

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

func TestWhatHappensToSessions(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o,
		&middleware.SessionEvent{Session: "id", What: "began"},
		&middleware.SessionEvent{Session: "id", What: "renewed", How: "login", To: "id-2"},
		&middleware.SessionEvent{Session: "id", What: "ended", How: "end_all"},
		&middleware.SessionEvent{Session: "id", What: "ended_open"},
		&middleware.SessionEvent{Session: "id", What: "lost", How: "lease", Err: errors.New("…")},
		&middleware.SessionEvent{Session: "id", What: "extended"},
		&middleware.SessionEvent{Session: "id", What: "extended", Err: context.DeadlineExceeded},
		&middleware.SessionEvent{Session: "id", What: "extended", Err: fmt.Errorf("%w: the session was ended", store.ErrLost)},
		&middleware.SessionEvent{Session: "id", What: "handed_over"},
		&middleware.SessionEvent{Session: "id", What: "swept"},
		&middleware.SessionEvent{Session: "id", What: "what a later version tells"})
	same(t, measured(t, reader),
		"latchkey.session.began sum=1",
		"latchkey.session.renewed latchkey.how=login sum=1",
		"latchkey.session.ended latchkey.how=end_all sum=1",
		"latchkey.session.ended_open sum=1",
		"latchkey.lock.lost latchkey.how=lease sum=1",
		"latchkey.lock.extended sum=1",
		"latchkey.lock.extended error.type=timeout sum=1",
		"latchkey.lock.extended error.type=lost sum=1",
		"latchkey.lock.handed_over sum=1",
		"latchkey.lock.swept sum=1")
}

// For Prometheus a counter that appears with 1 has not risen. So the first lost lock would raise no alarm if the
// counter did not exist before.
func TestCountersExistFromTheStart(t *testing.T) {
	t.Parallel()
	_, reader := metered(Options{})
	exist := make(map[string]bool)
	for _, s := range all(t, reader) {
		exist[s.String()] = true
	}
	for _, want := range []string{
		"latchkey.lock.lost latchkey.how=lease sum=0", "latchkey.lock.lost latchkey.how=unavailable sum=0",
		"latchkey.cookie.rejected latchkey.how=unknown_key sum=0", "latchkey.session.ended latchkey.how=max_sessions sum=0",
		"latchkey.session.began sum=0", "latchkey.request.reruns sum=0", "latchkey.cluster.redirects latchkey.how=asked sum=0",
		"latchkey.lock.extended error.type=timeout sum=0",
	} {
		if !exist[want] {
			t.Errorf("%s is not exported", want)
		}
	}
}

// Two observers of one program count together, although each counts for itself.
func TestTwoObservers(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	for range 2 {
		tell(New(Options{MeterProvider: provider}), &middleware.SessionEvent{What: "began"}, &middleware.RequestEvent{Outcome: "began"})
	}
	same(t, measured(t, reader),
		"latchkey.session.began sum=2",
		"latchkey.requests latchkey.mode=exclusive latchkey.outcome=began sum=2")
}

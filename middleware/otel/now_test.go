package otellatchkey

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
)

// A census counts the sessions that are held in this process, who waits for which, and which are open. Two Sessions
// on one store both list the waiters, which count once. A hold in another process counts in that process.
func TestCensus(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	request := func(session, state string, ago time.Duration) middleware.Request {
		return middleware.Request{Session: session, State: state, Since: noon.Add(-ago)}
	}
	elsewhere := request("b", "holds", time.Hour)
	elsewhere.Process = "web-2 pid 7"
	waits := []middleware.Request{
		request("a", "waits", 3), request("a", "waits", 2), request("a", "waits", 1), elsewhere, request("b", "waits", 1),
		request("a", "holds", time.Minute), request("d", "holds", time.Second),
	}
	var c census
	c.add(append(waits, request("a", "open", time.Hour), request("c", "open", time.Hour)))
	c.add(append(waits, request("e", "open", time.Hour), request("f", "what a later version has", 1)))
	if len(c.held) != 2 || c.waiting() != 4 || c.open != 3 || c.longest() != 3 || c.oldest(noon) != time.Minute {
		t.Errorf("%d are held, %d wait, %d are open; the longest line has %d, the oldest hold is %v old",
			len(c.held), c.waiting(), c.open, c.longest(), c.oldest(noon))
	}
	if none := (&census{}); none.waiting() != 0 || none.longest() != 0 || none.oldest(noon) != 0 {
		t.Error("an empty census is not empty")
	}
}

package middleware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The session for which most requests wait comes first. Of two with equally many, the one that has been held for
// longer comes first. Sessions that are only open come last.
func TestDebugShowsTheBusiestFirst(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	report := reportOf([]Request{
		{Session: "open", State: "open", Since: ago(time.Hour)},
		{Session: "held", State: "holds", Since: ago(time.Second)},
		{Session: "held for longer", State: "holds", Since: ago(time.Minute)},
		{Session: "opened before", State: "open", Since: ago(2 * time.Hour)},
		{Session: "waited for", State: "holds", Since: ago(time.Millisecond)},
		{Session: "waited for", State: "waits", Since: ago(time.Millisecond)},
		{Session: "waited for twice", State: "holds", Process: "web-2/77", Since: ago(-time.Millisecond)}, // its clock is ahead
		{Session: "waited for twice", State: "waits", Since: ago(0)},
		{Session: "waited for twice", State: "waits", Since: ago(0)},
	}, now)
	var got []string
	for _, in := range report.Sessions {
		got = append(got, in.Session)
	}
	want := "waited for twice, waited for, held for longer, held, opened before, open"
	if strings.Join(got, ", ") != want {
		t.Errorf("the order is %q, want %q", got, want)
	}
	if first := report.Sessions[0].Requests[0]; first.Process != "web-2/77" || first.Seconds != 0 {
		t.Errorf("the first is %+v", first)
	}
	if report.debugCounts != (debugCounts{4, 3, 2}) {
		t.Errorf("the sums are %+v", report.debugCounts)
	}
	if elsewhere := pageOf(report).Elsewhere(); elsewhere != 1 {
		t.Errorf("%d are held elsewhere", elsewhere)
	}
}

// With ten thousand requests the page shows those of the busiest sessions, and how many more there are. The JSON has all.
func TestDebugShowsTheBusiestOfMany(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var all []Request
	for i := range 9_000 {
		all = append(all, Request{Session: fmt.Sprint("stream-", i), State: "open", Since: now})
	}
	all = append(all, Request{Session: "hot", State: "holds", Since: now})
	for range 900 {
		all = append(all, Request{Session: "hot", State: "waits", Since: now})
	}
	for range 100 {
		all = append(all, Request{Session: "hot", State: "open", Since: now})
	}
	report := reportOf(all, now)
	d := new(Sessions).Debug().(*debugHandler)
	page := string(d.render(report, 0))
	for _, want := range []string{"<dd>9001</dd>", "waits 9<", "and 891 more that wait, 100 more that are open", "Not shown are 8951 less busy sessions"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	if n := strings.Count(page, "<tr"); n != 1+(1+10+1)+49*2 || len(page) > 100<<10 {
		t.Errorf("the page has %d rows, and %d bytes", n, len(page))
	}
	if n := len(report.Sessions) + len(report.Sessions[0].Requests); n != 9001+1001 {
		t.Errorf("the JSON has %d requests", n)
	}
}

// A duration is written so that its size is seen at once.
func TestHowLong(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{
		0: "0 ms", .0421: "42 ms", .0994: "99 ms", .0996: "0.1 s", 2.34: "2.3 s", 59.94: "59.9 s",
		59.96: "1:00 min", 60: "1:00 min", 754.9: "12:34 min", 3599.9: "59:59 min", 3600: "1:00 h", 90_061: "25:01 h",
	} {
		if got := howLong(seconds); got != want {
			t.Errorf("%v seconds are written %q, want %q", seconds, got, want)
		}
	}
}

// BenchmarkDebug measures what a look at ten thousand requests costs.
func BenchmarkDebug(b *testing.B) {
	now := time.Now()
	var all []Request
	for i := range 10_000 {
		all = append(all, Request{Session: fmt.Sprint("GJD0Gx0zZ6Qx5X2mY", i/2), State: []string{"holds", "waits"}[i%2], Label: "POST /order", Since: now})
	}
	d := new(Sessions).Debug().(*debugHandler)
	for _, target := range []string{"/", "/?format=json"} {
		b.Run(target, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, target, nil)
			for b.Loop() {
				d.answer(httptest.NewRecorder(), r, reportOf(all, now))
			}
		})
	}
}

// After a handover to another process, the waiters do not know the new holder until they ask. The page says so.
func TestDebugShowsThatAHolderIsUnknown(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, held := range []bool{false, true} {
		all := []Request{{Session: "id", State: "waits", Label: "GET /", Since: now}}
		if held {
			all = append([]Request{{Session: "id", State: "holds", Label: "POST /", Since: now}}, all...)
		}
		d := new(Sessions).Debug().(*debugHandler)
		page := string(d.render(reportOf(all, now), 0))
		if strings.Contains(page, "not known: ") == held || !strings.Contains(page, "waits 1<") {
			t.Errorf("held %v: %s", held, page)
		}
	}
}

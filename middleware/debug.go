package middleware

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
)

// Debug returns a page for the developer and the operator: what [Sessions.Requests] returns, busiest session first. The
// busiest session is the one for which most requests wait, and of two with equally many, the one that has been held
// for longer. It is like net/http/pprof: it shows this process only, and nothing until the program serves it.
//
//	debug := http.NewServeMux()
//	debug.Handle("GET /debug/sessions", sessions.Debug())
//	go http.ListenAndServe("127.0.0.1:6060", debug)
//
// Like pprof, the page does not check who asks. So serve it on an address that only you reach, as above, or behind a
// check of your own. Inside Handler, serve the check and the page in mode None, so that the page waits for no session:
// sessions.None(check(sessions.Debug())). If the check asks for the session's user, use sessions.ReadOnly: then the page needs
// Redis. On a machine with a browser it needs a check in any case: a page
// of another site may reach 127.0.0.1. The page has public IDs, labels and the process's host and ID, but no user, no path,
// no value and no secret.
//
// The page opens no session, acquires no lock, and asks Redis nothing, so it works while Redis is unavailable. It needs
// no JavaScript. With ?refresh=2 it loads itself again every two seconds. It has the 50 busiest sessions and at most ten
// requests of each, and says how many more there are.
//
// With ?format=json, or to a client that accepts application/json and not text/html, the response is JSON, with all
// sessions in the same order:
//
//	{
//	  "process": "web-1/4711",                  the host and process ID
//	  "time": "2026-11-26T05:15:00.5Z",         now
//	  "holds": 1, "waits": 1, "open": 1,        how many are in each state, holders elsewhere included
//	  "sessions": [{
//	    "session": "GJD0Gx0zZ6Qx5X2mYpNnCw",    the public ID
//	    "holds": 1, "waits": 1, "open": 1,      of this session
//	    "requests": [{
//	      "state": "holds",                     or "waits" or "open", see Request
//	      "label": "POST /order",
//	      "process": "web-2/77",                if the holder is in another process
//	      "since": "2026-11-26T05:14:58.2Z",
//	      "seconds": 2.3                        from since to now
//	    }, …]
//	  }, …]
//	}
//
// Later versions may have further fields.
func (s *Sessions) Debug() http.Handler {
	// The template is parsed here and not in a variable of the package: only a program that calls Debug links
	// html/template, which is large.
	d := &debugHandler{sessions: s, page: template.Must(template.New("debug").Funcs(debugFuncs()).Parse(debugHTML))}
	hash := sha256.Sum256([]byte(debugCSS))
	d.policy = "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return d
}

//go:embed debug.html
var debugHTML string

//go:embed debug.css
var debugCSS string

// A debugHandler serves the page. Sessions.routeOf knows the type: the page has no session, whatever Options.Mode says.
type debugHandler struct {
	sessions *Sessions
	page     *template.Template
	policy   string // Content-Security-Policy
}

func (d *debugHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", d.policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	h.Add("Vary", "Accept")
	d.answer(w, r, reportOf(d.sessions.requests(), time.Now()))
}

// answer responds with a report.
func (d *debugHandler) answer(w http.ResponseWriter, r *http.Request, report debugReport) {
	h := w.Header()
	var body []byte
	if wantsJSON(r) {
		h.Set("Content-Type", "application/json")
		body, _ = json.MarshalIndent(report, "", "  ") // strings, numbers and times that JSON has: no error
	} else {
		h.Set("Content-Type", "text/html; charset=utf-8")
		refresh, _ := strconv.Atoi(r.URL.Query().Get("refresh"))
		if refresh < 1 || refresh > 3600 {
			refresh = 0
		} else {
			h.Set("Refresh", strconv.Itoa(refresh))
		}
		body = d.render(report, refresh)
	}
	_, _ = w.Write(body) // the client may be gone
}

// render returns the page of a report. The page loads itself again after refresh seconds, or never if that is 0.
func (d *debugHandler) render(report debugReport, refresh int) []byte {
	page := pageOf(report)
	page.Refresh = refresh
	var b bytes.Buffer
	if err := d.page.Execute(&b, page); err != nil { // a mistake in the template
		panic(err)
	}
	return b.Bytes()
}

func wantsJSON(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return r.URL.Query().Get("format") == "json" ||
		strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// A debugReport is the JSON: see Debug.
type debugReport struct {
	Process string    `json:"process"`
	Time    time.Time `json:"time"`
	debugCounts
	Sessions []debugSession `json:"sessions"`
}

type debugCounts struct {
	Holds int `json:"holds"`
	Waits int `json:"waits"`
	Open  int `json:"open"`
}

func (c *debugCounts) add(state string) {
	switch state {
	case stateHolds:
		c.Holds++
	case stateWaits:
		c.Waits++
	default:
		c.Open++
	}
}

type debugSession struct {
	Session string `json:"session"`
	debugCounts
	Requests []debugRequest `json:"requests"`
}

type debugRequest struct {
	State   string    `json:"state"`
	Label   string    `json:"label"`
	Process string    `json:"process,omitempty"`
	Since   time.Time `json:"since"`
	Seconds float64   `json:"seconds"`
}

// reportOf makes a report of requests. The requests of a session must stand one after another, as Requests promises.
func reportOf(all []Request, now time.Time) debugReport {
	report := debugReport{Process: records.ThisProcess(), Time: now.UTC(), Sessions: []debugSession{}} // [] in JSON, not null
	for _, r := range all {
		last := len(report.Sessions) - 1
		if last < 0 || report.Sessions[last].Session != r.Session {
			report.Sessions = append(report.Sessions, debugSession{Session: r.Session})
			last++
		}
		in := &report.Sessions[last]
		in.Requests = append(in.Requests, debugRequest{
			State: r.State, Label: r.Label, Process: r.Process,
			Since: r.Since.UTC(), Seconds: max(0, now.Sub(r.Since).Seconds()), // another host's clock may be ahead
		})
		in.add(r.State)
		report.add(r.State)
	}
	slices.SortStableFunc(report.Sessions, busier)
	return report
}

// busier orders sessions: most waiters, then held for longest, then open for longest.
func busier(a, b debugSession) int {
	first, second := a.Requests[0], b.Requests[0] // the holder, if there is one
	return cmp.Or(cmp.Compare(b.Waits, a.Waits), cmp.Compare(b.Holds, a.Holds), first.Since.Compare(second.Since))
}

// The page shows at most this many sessions, and this many requests of each.
const debugMaxSessions, debugMaxRequests = 50, 10

// A debugPage is what the page shows of a report.
type debugPage struct {
	debugReport
	Shown   []shownSession
	More    int // sessions that are not shown
	Refresh int // in seconds; 0: never
}

type shownSession struct {
	Session string
	Shown   []shownRequest
	Unknown bool   // requests wait, and no holder is known: there may be none, for example while Redis does not reply
	More    string // what is not shown
}

type shownRequest struct {
	debugRequest
	Place int // of a waiter, in line
}

// Elsewhere returns how many of the holders are in other processes. The gauges of metrics leave them out.
func (p debugPage) Elsewhere() (n int) {
	for _, in := range p.Sessions {
		for _, r := range in.Requests {
			if r.State == stateHolds && r.Process != "" {
				n++
			}
		}
	}
	return n
}

// Style is the style sheet, byte for byte: the policy has its hash.
func (debugPage) Style() template.CSS { return template.CSS(debugCSS) }

func pageOf(report debugReport) debugPage {
	page := debugPage{debugReport: report, More: max(0, len(report.Sessions)-debugMaxSessions)}
	for _, in := range report.Sessions[:len(report.Sessions)-page.More] {
		shown, more := shownSession{Session: in.Session, Unknown: in.Waits > 0 && in.Holds == 0}, in.debugCounts
		for i, r := range in.Requests[:min(len(in.Requests), debugMaxRequests)] {
			one := shownRequest{debugRequest: r}
			switch r.State {
			case stateWaits:
				one.Place = i + 1 - in.Holds
				more.Waits--
			case stateOpen:
				more.Open--
			}
			shown.Shown = append(shown.Shown, one)
		}
		var parts []string
		if more.Waits > 0 {
			parts = append(parts, fmt.Sprint(more.Waits, " more that wait"))
		}
		if more.Open > 0 {
			parts = append(parts, fmt.Sprint(more.Open, " more that are open"))
		}
		shown.More = strings.Join(parts, ", ")
		page.Shown = append(page.Shown, shown)
	}
	return page
}

func debugFuncs() template.FuncMap {
	return template.FuncMap{
		"clock":   func(t time.Time) string { return t.Format("15:04:05 UTC") },
		"exact":   func(t time.Time) string { return t.Format(time.RFC3339Nano) },
		"howLong": howLong,
	}
}

// howLong writes a number of seconds so that its size is seen at once.
func howLong(seconds float64) string {
	if seconds < 0.0995 {
		return fmt.Sprintf("%.0f ms", seconds*1000)
	}
	seconds = math.Round(seconds*10) / 10
	whole := int(seconds)
	switch {
	case whole < 60:
		return fmt.Sprintf("%.1f s", seconds)
	case whole < 3600:
		return fmt.Sprintf("%d:%02d min", whole/60, whole%60)
	}
	return fmt.Sprintf("%d:%02d h", whole/3600, whole/60%60)
}

package middleware_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// look asks for the page or the JSON, outside of all sessions.
func look(s *middleware.Sessions, target, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	s.Debug().ServeHTTP(w, r)
	return w
}

// asBrowser is what a browser accepts.
const asBrowser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// textOf returns what a visitor reads in the rows of a page's tables, a row a line.
func textOf(page string) string {
	var lines []string
	for _, row := range regexp.MustCompile(`(?s)<tr.*?</tr>`).FindAllString(page, -1) {
		cells := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(row, " ")
		lines = append(lines, strings.Join(strings.Fields(html.UnescapeString(cells)), " "))
	}
	return strings.Join(lines, "\n")
}

// The page and the JSON show who holds a session since when, who waits in line, and which streams are open, the busiest
// session first. They show no value, no user, no path, and nothing that opens a session.
func TestDebugShowsWhoHoldsAndWhoWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/stream/{secret}", func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).Flush()
			waitUntilFree(r)
		})
		handle(mux, "/user", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
			s.Login("zoe-the-user")
			s.Set("key-of-zoe", "value-of-zoe")
		})
		s, zoe := begun(t, r, middleware.Options{}, mux)
		bob := s.visitor(t)
		if page := look(s.sessions, "/", asBrowser).Body.String(); textOf(page) != "" || !strings.Contains(page, "No request of this process") {
			t.Errorf("while nothing happens the page is\n%s", page)
		}
		zoe.get(s.URL+"/user").want(t, 200, "")
		zoeID, bobID := zoe.get(s.URL+"/id").body, bob.get(s.URL+"/id").body
		end := zoe.hold(s.URL + "/stream/path-of-zoe")
		time.Sleep(time.Second)
		free := bob.hold(s.URL + "/pause")
		time.Sleep(time.Second)
		first := bob.start(s.URL + "/add")
		time.Sleep(1300 * time.Millisecond)
		second := bob.start(s.URL + "/get")
		synctest.Wait()

		process := thisProcess()
		page := look(s.sessions, "/debug/sessions", asBrowser).Body.String()
		want := []string{"State Request For",
			bobID, "holds GET /pause 2.3 s", "waits 1 GET /add 1.3 s", "waits 2 GET /get 0 ms",
			zoeID, "open GET /stream/{secret} 3.3 s"}
		if got := textOf(page); got != strings.Join(want, "\n") {
			t.Errorf("the page shows\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
		if !strings.Contains(page, process) {
			t.Errorf("the page does not name the process %s", process)
		}
		asJSON := look(s.sessions, "/debug/sessions?format=json", asBrowser).Body.String()
		var report, expected any
		must(t, json.Unmarshal([]byte(asJSON), &report))
		now := time.Now().UTC() // it stands still
		when := func(ago time.Duration) string { return now.Add(-ago).Format(time.RFC3339Nano) }
		must(t, json.Unmarshal(fmt.Appendf(nil, `{"process": %q, "time": %q, "holds": 1, "waits": 2, "open": 1, "sessions": [
			{"session": %q, "holds": 1, "waits": 2, "open": 0, "requests": [
				{"state": "holds", "label": "GET /pause", "since": %q, "seconds": 2.3},
				{"state": "waits", "label": "GET /add", "since": %q, "seconds": 1.3},
				{"state": "waits", "label": "GET /get", "since": %q, "seconds": 0}]},
			{"session": %q, "holds": 0, "waits": 0, "open": 1, "requests": [
				{"state": "open", "label": "GET /stream/{secret}", "since": %q, "seconds": 3.3}]}]}`,
			process, when(0), bobID, when(2300*time.Millisecond), when(1300*time.Millisecond), when(0), zoeID, when(3300*time.Millisecond)), &expected))
		if got, want := fmt.Sprint(report), fmt.Sprint(expected); got != want {
			t.Errorf("the JSON is\n%s\nwant\n%s", got, want)
		}
		secrets := []string{"zoe-the-user", "key-of-zoe", "value-of-zoe", "path-of-zoe"}
		for _, c := range append(zoe.cookies(s), bob.cookies(s)...) {
			secrets = append(secrets, c.Value)
		}
		for _, secret := range secrets {
			if strings.Contains(page+asJSON, secret) {
				t.Errorf("it shows %q", secret)
			}
		}
		free()
		<-first
		<-second
		end()
	})
}

func thisProcess() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// The page opens no session, whatever the options say. So the page also answers a visitor whose own session is held,
// and it answers while Redis is away. A handler around it that checks who asks may use the session, in any mode.
func TestDebugNeedsNoSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		mux := app()
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{}, mux)
		mux.Handle("GET /debug/sessions", s.sessions.Debug())
		guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n, _ := session.Get[int](session.FromContext(r.Context()), "n"); n == 0 {
				http.NotFound(w, r)
				return
			}
			s.sessions.Debug().ServeHTTP(w, r)
		})
		mux.Handle("GET /exclusive", s.sessions.Exclusive(guarded))
		mux.Handle("GET /readonly", s.sessions.ReadOnly(guarded))
		v := s.visitor(t)
		for _, path := range []string{"/exclusive", "/readonly"} {
			v.get(s.URL+path).want(t, 200, "*")
			newVisitor(t).get(s.URL+path).want(t, 404, "*")
		}
		free := v.hold(s.URL + "/pause")
		proxy.Forget()
		check := func(when string) {
			t.Helper()
			began := time.Now()
			a := v.get(s.URL + "/debug/sessions?format=json")
			a.want(t, 200, "*")
			if took := time.Since(began); took > 0 || !strings.Contains(a.body, `"holds"`) || a.sets() || proxy.RoundTrips() > 0 {
				t.Errorf("%s it took %v and %d round trips, with Set-Cookie %q:\n%s", when, took, proxy.RoundTrips(), a.Header["Set-Cookie"], a.body)
			}
		}
		check("while the session is held")
		r.Stop(t)
		check("while Redis is away")
		r.Restart(t)
		free()
	})
}

// The page and the JSON are for GET and HEAD, are never stored, load nothing, and run no script.
func TestDebugAnswers(t *testing.T) {
	t.Parallel()
	sessions := newSessions(t, redistest.Embedded(t), middleware.Options{})
	h := sessions.Debug()
	for _, c := range []struct {
		method, target, accept string
		status                 int
		kind, refresh          string
	}{
		{"GET", "/", asBrowser, 200, "text/html; charset=utf-8", ""},
		{"HEAD", "/", asBrowser, 200, "text/html; charset=utf-8", ""},
		{"GET", "/", "", 200, "text/html; charset=utf-8", ""},
		{"GET", "/", "*/*", 200, "text/html; charset=utf-8", ""},
		{"GET", "/", "application/json, text/plain", 200, "application/json", ""},
		{"GET", "/", "application/json, text/html", 200, "text/html; charset=utf-8", ""},
		{"GET", "/?format=json", asBrowser, 200, "application/json", ""},
		{"HEAD", "/?format=json", "", 200, "application/json", ""},
		{"GET", "/?refresh=2", asBrowser, 200, "text/html; charset=utf-8", "2"},
		{"GET", "/?refresh=0", asBrowser, 200, "text/html; charset=utf-8", ""},
		{"GET", "/?refresh=2;url=https://example.com", asBrowser, 200, "text/html; charset=utf-8", ""},
		{"POST", "/", asBrowser, 405, "text/plain; charset=utf-8", ""},
		{"DELETE", "/?format=json", "application/json", 405, "text/plain; charset=utf-8", ""},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		r.Header.Set("Accept", c.accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got := w.Header()
		name := c.method + " " + c.target + ", accepting " + c.accept
		if w.Code != c.status || got.Get("Content-Type") != c.kind || got.Get("Refresh") != c.refresh {
			t.Errorf("%s: %d, %s, refresh %q; want %v", name, w.Code, got.Get("Content-Type"), got.Get("Refresh"), c)
		}
		policy := got.Get("Content-Security-Policy")
		if got.Get("Cache-Control") != "no-store" || got.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "script-src") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the header is %v", name, got)
		}
		if c.status == 405 && got.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: Allow is %q", name, got.Get("Allow"))
		}
		if c.status == 200 && got.Get("Vary") != "Accept" {
			t.Errorf("%s: Vary is %q", name, got.Get("Vary"))
		}
	}
}

// Labels are the application's, and may contain anything: they neither become markup nor confuse a terminal.
func TestDebugShowsAnyLabel(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		label := "<script>alert('label')</script>\"&\x1b[2J\x00\u0085\u202e\xff" + strings.Repeat("x", 500)
		s, v := begun(t, r, middleware.Options{Label: func(*http.Request) string { return label }}, app())
		free := v.hold(s.URL + "/pause")
		wait := v.start(s.URL + "/add")
		synctest.Wait()
		page, asJSON := look(s.sessions, "/", asBrowser).Body.String(), look(s.sessions, "/?format=json", "").Body.String()
		if strings.Contains(page, "<script") || !strings.Contains(page, "&lt;script&gt;alert(") {
			t.Errorf("the page is\n%s", page)
		}
		var report struct {
			Sessions []struct{ Requests []struct{ Label string } }
		}
		must(t, json.Unmarshal([]byte(asJSON), &report))
		requests := report.Sessions[0].Requests
		if len(requests) != 2 || !strings.HasPrefix(requests[1].Label, `<script>alert('label')</script>"&`) {
			t.Errorf("the JSON is\n%s", asJSON)
		}
		for _, text := range []string{page, asJSON} {
			odd := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
			if odd >= 0 || strings.Contains(text, strings.Repeat("x", 200)) {
				t.Errorf("at %d it contains what cannot be printed, or a label is too long:\n%q", odd, text)
			}
		}
		free()
		<-wait
	})
}

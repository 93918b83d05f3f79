package middleware_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// count returns the cookie and the id of a new session with n in it.
func (s *site) count(t *testing.T, n int) (*http.Cookie, string) {
	t.Helper()
	v := newVisitor(t)
	for range n {
		v.get(s.URL + "/add")
	}
	return v.cookies(s)[0], v.get(s.URL + "/id").body
}

// end ends the session of a cookie, and leaves a tombstone or nothing at all.
func (s *site) end(t *testing.T, r *redistest.Server, c *http.Cookie, tombstone bool) {
	t.Helper()
	id := with(t, c).get(s.URL + "/id").body
	with(t, c).get(s.URL+"/logout").want(t, 200, "")
	if !tombstone {
		r.Do(t, "DEL", recordOf(id))
	}
}

// Of several cookies with the right name the first that opens a session counts, in the order in
// which the browser sends them: those with longer paths first, then older ones. So neither a
// forged cookie nor one whose session is over hides the visitor's own.
func TestOfSeveralCookiesTheFirstLiveOneCounts(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		for name, mode := range map[string]middleware.Mode{"exclusive": middleware.Exclusive, "read-only": middleware.ReadOnly} {
			t.Run(name, func(t *testing.T) {
				writer := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
				s := newSite(t, r.Pool(t, 4), middleware.Options{Mode: func(*http.Request) middleware.Mode { return mode }}, app())
				one, _ := writer.count(t, 1)
				two, _ := writer.count(t, 2)
				gone, _ := writer.count(t, 3)
				writer.end(t, r, gone, true)
				unknown, _ := writer.count(t, 4)
				writer.end(t, r, unknown, false)
				forged := &http.Cookie{Name: "sid", Value: "forged"}
				for _, tt := range []struct {
					cookies []*http.Cookie
					want    string
				}{
					{[]*http.Cookie{one, two}, "1"},
					{[]*http.Cookie{two, one}, "2"},
					{[]*http.Cookie{forged, two, one}, "2"},
					{[]*http.Cookie{gone, two}, "2"},
					{[]*http.Cookie{unknown, two}, "2"},
					{[]*http.Cookie{unknown, gone, unknown, forged, one, two}, "1"},
					{[]*http.Cookie{unknown, gone}, "0"},
				} {
					with(t, tt.cookies...).get(s.URL+"/get").want(t, 200, tt.want)
				}
			})
		}
	})
}

// Where all sessions are over, what counts is whether one of them was ended less than a minute
// ago: then another cookie may be on its way.
func TestOfSeveralDeadCookiesAnEndedOneCounts(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
		gone, id := s.count(t, 1)
		s.end(t, r, gone, true)
		unknown, _ := s.count(t, 1)
		s.end(t, r, unknown, false)
		for _, cookies := range [][]*http.Cookie{{unknown, gone}, {gone, unknown}} {
			v := with(t, cookies...)
			v.get(s.URL+"/id").want(t, 200, id)
			v.background("POST", s.URL+"/add").want(t, 409, "*")
			if a := v.navigate("POST", s.URL+"/add"); a.body != "1" || !a.sets() {
				t.Errorf("%d %q, header %v", a.StatusCode, a.body, a.Header)
			}
		}
		if a := with(t, unknown).background("POST", s.URL+"/add"); a.body != "1" || !a.sets() {
			t.Errorf("%d %q, header %v", a.StatusCode, a.body, a.Header)
		}
	})
}

// Two cookies that open a session each are a mistake of the application or an attack: that is
// logged. The second session is not locked, prolonged or changed.
func TestTwoLiveCookiesAreReported(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{}, app())
		used, usedID := s.count(t, 1)
		other, otherID := s.count(t, 2)
		dead, _ := s.count(t, 1)
		s.end(t, r, dead, true)
		const warning = "the cookies of two sessions"

		for _, cookies := range [][]*http.Cookie{{used}, {used, used}, {dead, used}, {used, dead}} {
			with(t, cookies...).get(s.URL+"/get").want(t, 200, "1")
		}
		if strings.Contains(s.log.String(), warning) {
			t.Errorf("there was only one session; log:\n%s", s.log)
		}

		record, lock := keysOf(otherID)
		r.Do(t, "PEXPIRE", record, time.Minute.Milliseconds())
		before, _ := r.Get(t, record)
		proxy.Forget()
		with(t, dead, used, dead, other).get(s.URL+"/add").want(t, 200, "2")
		if lines := s.log.Lines(warning); len(lines) != 1 || !strings.Contains(lines[0], "level=WARN") ||
			!strings.Contains(lines[0], "session="+usedID) || !strings.Contains(lines[0], "other="+otherID) {
			t.Errorf("log:\n%s", s.log)
		}
		for _, cmd := range proxy.Commands() {
			if slices.Contains(cmd.Args, lock) {
				t.Errorf("the lock of the second session is touched: %v", cmd)
			}
		}
		if n := proxy.RoundTrips(); n != 5 {
			t.Errorf("%d round trips to Redis, want 5: two for the dead one, take, look, commit", n)
		}
		if after, _ := r.Get(t, record); after != before {
			t.Errorf("the second session was %s and is %s", before, after)
		}
		if left := r.Do(t, "PTTL", record).(int64); left > time.Minute.Milliseconds() {
			t.Errorf("the second session was prolonged to %d ms", left)
		}
	})
}

// A sibling domain plants a cookie of its own, which the browser sends first. After the login
// that cookie is dead, and the visitor's own counts. Neither it nor its session can be removed by
// the answer to a logout, and it does no harm.
func TestAPlantedCookieDoesNotUndoTheLogin(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, welcoming())
		for name, ended := range map[string]bool{"alive": false, "ended by its owner": true} {
			t.Run(name, func(t *testing.T) {
				planted, plantedID := s.count(t, 1)
				if ended {
					s.end(t, r, planted, true)
				}
				login := with(t, planted).navigate("POST", s.URL+"/login")
				login.want(t, 200, "")
				both := with(t, append(login.Cookies(), planted)...)
				both.get(s.URL+"/user").want(t, 200, "ann")
				both = with(t, append([]*http.Cookie{planted}, login.Cookies()...)...)
				both.get(s.URL+"/user").want(t, 200, "ann")
				r.Do(t, "DEL", recordOf(plantedID)) // as the minute does
				both.get(s.URL+"/user").want(t, 200, "ann")
				both.get(s.URL+"/logout").want(t, 200, "")
				both.get(s.URL+"/user").want(t, 200, "")
				with(t, planted).get(s.URL+"/user").want(t, 200, "")
			})
		}
	})
}

// At most eight cookies of the name are verified. So a sibling domain that plants eight of them
// hides the visitor's own, as SECURITY.md says.
func TestAtMostEightCookiesAreVerified(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	s := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
	own, _ := s.count(t, 1)
	wellFormed := &http.Cookie{Name: "sid", Value: strings.Repeat("x", 120)}
	malformed := &http.Cookie{Name: "sid", Value: "forged!"}
	for n, want := range map[int]string{0: "1", 7: "1", 8: "0", 100: "0"} {
		var cookies []*http.Cookie
		for range n {
			cookies = append(cookies, malformed, wellFormed)
		}
		with(t, append(cookies, malformed, own)...).get(s.URL+"/get").want(t, 200, want)
	}
}

// With eight cookies a request does not wait eight times for a Redis that has fallen silent: only
// for the first look at another session, and for the commit.
func TestTheOtherCookiesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	r := redistest.Embedded(t)
	made := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
	var cookies []*http.Cookie
	for range 8 {
		cookie, _ := made.count(t, 1)
		cookies = append(cookies, cookie)
	}
	proxy := redistest.NewProxy(t, r)
	s := newSiteOn(t, store.New(proxy.Pool(t, 4), store.Options{Timeout: timeout}), middleware.Options{}, app())
	with(t, cookies[0]).get(s.URL+"/get").want(t, 200, "1")
	proxy.Forget()
	var once sync.Once
	began := time.Now()
	proxy.Inject(func(redistest.Command) redistest.Fault {
		if proxy.Requests() > 1 { // the take has passed
			once.Do(func() { began = time.Now() })
			return redistest.Hang
		}
		return redistest.Pass
	})
	with(t, cookies...).get(s.URL+"/get").want(t, 503, "*")
	if took := time.Since(began); took > 5*timeout {
		t.Errorf("the answer took %v after Redis had fallen silent", took)
	}
}

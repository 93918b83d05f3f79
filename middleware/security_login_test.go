package middleware_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// ASVS 7.2.4: whatever cookie an attacker plants in a visitor's browser before the
// login, it is worth nothing after it.
func TestAPlantedSessionIsWorthNothingAfterTheLogin(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(t *testing.T, r *redistest.Server, s *site, attacker *visitor, id string){
		"alive":     func(*testing.T, *redistest.Server, *site, *visitor, string) {},
		"timed out": func(t *testing.T, r *redistest.Server, _ *site, _ *visitor, id string) { r.Do(t, "DEL", recordOf(id)) },
		"ended more than a minute ago": func(t *testing.T, r *redistest.Server, s *site, attacker *visitor, id string) {
			attacker.get(s.URL+"/logout").want(t, 200, "")
			r.Do(t, "DEL", recordOf(id)) // as the minute does
		},
		"just ended": func(t *testing.T, _ *redistest.Server, s *site, attacker *visitor, _ string) {
			attacker.get(s.URL+"/logout").want(t, 200, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, r *redistest.Server) {
				s := newSite(t, r.Pool(t, 4), middleware.Options{}, welcoming())
				attacker := newVisitor(t)
				attacker.get(s.URL+"/add").want(t, 200, "1")
				id := attacker.get(s.URL + "/id").body
				planted := attacker.cookies(s)
				before(t, r, s, attacker, id)

				victim := newVisitor(t)
				first, _ := http.NewRequest(http.MethodGet, s.URL, nil)
				victim.Jar.SetCookies(first.URL, planted)
				a := victim.get(s.URL + "/login")
				a.want(t, 200, "")
				victim.get(s.URL+"/user").want(t, 200, "ann")
				if victim.get(s.URL+"/id").body == id {
					t.Error("the visitor has the planted id")
				}

				attacker = with(t, planted...)
				attacker.get(s.URL+"/user").want(t, 200, "")
				attacker.get(s.URL+"/len").want(t, 200, "0")
				victim.get(s.URL+"/user").want(t, 200, "ann")
			})
		})
	}
}

// ASVS 7.3.2: a login gives the session a new id, but no more time than it had.
func TestANewIDDoesNotProlongTheSession(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{TTL: time.Hour, Lifetime: 2 * time.Hour}, app())
		makeOlder(t, r, v.get(s.URL+"/id").body, 119*time.Minute)
		v.get(s.URL+"/login").want(t, 200, "")
		left := r.Do(t, "PTTL", recordOf(v.get(s.URL+"/id").body)).(int64)
		if left <= 0 || left > time.Minute.Milliseconds() {
			t.Errorf("a session with a minute to live has %d ms after the login", left)
		}
	})
}

// ASVS 7.3.1: a session that is not used times out, and its id is not used again.
func TestAnIdleSessionIsOver(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{TTL: 50 * time.Millisecond}, app())
		v := newVisitor(t)
		v.get(s.URL+"/login").want(t, 200, "")
		old := v.cookies(s)
		eventually(t, "the session times out", func() bool { return len(r.Keys(t)) == 0 })
		with(t, old...).get(s.URL+"/len").want(t, 200, "0")
		if a := with(t, old...).get(s.URL + "/add"); a.body != "1" || !a.sets() || a.Cookies()[0].Value == old[0].Value {
			t.Errorf("the old id is used again: %d %q %v", a.StatusCode, a.body, a.Header)
		}
	})
}

// ASVS 7.1.1: the timeouts in the README are those that a session has if
// nothing else is said.
func TestTheDefaultTimeoutsAreAsDocumented(t *testing.T) {
	t.Parallel()
	readme := read(t, "../README.md")
	for _, row := range []string{
		fmt.Sprintf(`\| .TTL. \| [^|]+ \| %.0f min \|`, store.DefaultTTL.Minutes()),
		fmt.Sprintf(`\| .Lifetime. \| [^|]+ \| %.0f h \|`, store.DefaultLifetime.Hours()),
	} {
		if !regexp.MustCompile(row).MatchString(readme) {
			t.Errorf("the README has no %s", row)
		}
	}
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{}, app())
		id := v.get(s.URL + "/id").body
		idle := time.Duration(r.Do(t, "PTTL", recordOf(id)).(int64)) * time.Millisecond
		if idle > store.DefaultTTL || idle < store.DefaultTTL-time.Minute {
			t.Errorf("an idle session lives for %v", idle)
		}
		makeOlder(t, r, id, store.DefaultLifetime-time.Minute)
		v.get(s.URL+"/get").want(t, 200, "1")
		makeOlder(t, r, id, store.DefaultLifetime)
		v.get(s.URL+"/get").want(t, 200, "0")
	})
}

func recordOf(id string) string {
	record, _ := keysOf(id)
	return record
}

// makeOlder makes a session as old as that.
func makeOlder(t *testing.T, r *redistest.Server, id string, age time.Duration) {
	t.Helper()
	stored, _ := r.Get(t, recordOf(id))
	before, rest, ok := strings.Cut(stored, `"c":`)
	_, after, _ := strings.Cut(rest, ",")
	if !ok {
		t.Fatalf("%s is no record", stored)
	}
	created := strconv.FormatInt(time.Now().Add(-age).UnixMilli(), 10)
	r.Do(t, "SET", recordOf(id), before+`"c":`+created+","+after, "PX", time.Hour.Milliseconds())
}

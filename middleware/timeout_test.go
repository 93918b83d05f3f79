package middleware_test

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// P12: every request extends the idle timeout, whether it writes or not.
func TestEveryRequestExtendsTheIdleTimeout(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{
			TTL:  time.Hour,
			Mode: byPath(map[string]middleware.Mode{"/get": middleware.ReadOnly}),
		}, app())
		record, _ := keysOf(v.get(s.URL + "/id").body)
		for _, path := range []string{"/get", "/nothing", "/add"} {
			r.Do(t, "PEXPIRE", record, time.Minute.Milliseconds()) // as if nobody had come for a while
			v.get(s.URL+path).want(t, 200, "*")
			left := time.Duration(r.Do(t, "PTTL", record).(int64)) * time.Millisecond
			if left <= time.Minute || left > time.Hour {
				t.Errorf("after %s the session has %v left, want almost an hour", path, left)
			}
		}
	})
}

// P12: a visitor who never pauses is logged out nevertheless.
func TestTheAbsoluteTimeoutCannotBeExtended(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{
			TTL: time.Hour, Lifetime: 2 * time.Hour,
			Mode: byPath(map[string]middleware.Mode{"/get": middleware.ReadOnly}),
		}, app())
		record, _ := keysOf(v.get(s.URL + "/id").body)
		// age makes the session as old as that. One that is too old is still in Redis.
		age := func(old time.Duration) {
			stored, _ := r.Get(t, record)
			before, rest, _ := strings.Cut(stored, `"c":`)
			_, after, _ := strings.Cut(rest, ",")
			created := strconv.FormatInt(time.Now().Add(-old).UnixMilli(), 10)
			r.Do(t, "SET", record, before+`"c":`+created+","+after, "PX", cmp.Or(2*time.Hour-old, time.Hour).Milliseconds())
		}
		for _, path := range []string{"/get", "/nothing", "/add"} {
			age(119 * time.Minute)
			v.get(s.URL+path).want(t, 200, "*")
			if left := time.Duration(r.Do(t, "PTTL", record).(int64)) * time.Millisecond; left > time.Minute {
				t.Errorf("after %s a session with a minute to live has %v", path, left)
			}
		}
		age(2 * time.Hour)
		v.get(s.URL+"/get").want(t, 200, "0")
		if a := v.get(s.URL + "/add"); a.body != "1" || !a.sets() {
			t.Errorf("a session that is over was written to: %d %q", a.StatusCode, a.body)
		}
	})
}

// ASVS 7.3.1: any request that opens the session counts as its use, also one that only reads it,
// as a page that polls does. One that does not open it does not count.
func TestOnlyWhatOpensTheSessionKeepsItAlive(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/lazy", func(http.ResponseWriter, *http.Request) {})
		mux.HandleFunc("/none", func(http.ResponseWriter, *http.Request) {})
		s, v := begun(t, r, middleware.Options{TTL: time.Hour, Mode: byPath(map[string]middleware.Mode{
			"/get": middleware.ReadOnly, "/lazy": middleware.Lazy, "/none": middleware.None,
		})}, mux)
		record := recordOf(v.get(s.URL + "/id").body)
		for path, extends := range map[string]bool{"/get": true, "/nothing": true, "/lazy": false, "/none": false} {
			r.Do(t, "PEXPIRE", record, time.Minute.Milliseconds()) // as if nobody had come for a while
			v.get(s.URL+path).want(t, 200, "*")
			left := time.Duration(r.Do(t, "PTTL", record).(int64)) * time.Millisecond
			if extended := left > time.Minute; extended != extends {
				t.Errorf("after %s the session has %v left", path, left)
			}
		}
	})
}

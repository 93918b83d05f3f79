package middleware_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// ASVS 7.2.4: whatever cookie an attacker plants in a visitor's browser before the
// login, it is worth nothing after it.
func TestAPlantedSessionIsWorthNothingAfterTheLogin(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, welcoming())
		for name, before := range map[string]func(attacker *visitor, id string){
			"alive":      func(*visitor, string) {},
			"timed out":  func(_ *visitor, id string) { r.Do(t, "DEL", recordOf(id)) },
			"just ended": func(attacker *visitor, _ string) { attacker.get(s.URL+"/logout").want(t, 200, "") },
		} {
			attacker := newVisitor(t)
			attacker.get(s.URL+"/add").want(t, 200, "1")
			id := attacker.get(s.URL + "/id").body
			planted := attacker.cookies(s)
			before(attacker, id)

			victim := newVisitor(t)
			first, _ := http.NewRequest(http.MethodGet, s.URL, nil)
			victim.Jar.SetCookies(first.URL, planted)
			victim.get(s.URL+"/login").want(t, 200, "")
			victim.get(s.URL+"/user").want(t, 200, "ann")
			if victim.get(s.URL+"/id").body == id {
				t.Errorf("%s: the visitor has the planted id", name)
			}
			attacker = with(t, planted...)
			attacker.get(s.URL+"/user").want(t, 200, "")
			attacker.get(s.URL+"/len").want(t, 200, "0")
			victim.get(s.URL+"/user").want(t, 200, "ann")
		}
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

package middleware_test

import (
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// P8: a full Redis costs what has to be stored, and no more. Who only reads is served, in every
// mode, and who logs out is out.
func TestAFullRedisServesReadersAndLogouts(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	modes := map[string]middleware.Mode{"/id": middleware.ReadOnly}
	s := newSite(t, r.Pool(t, 4), middleware.Options{Mode: byPath(modes)}, app())
	ann, bob := newVisitor(t), newVisitor(t)
	ann.get(s.URL+"/add").want(t, 200, "1")
	bob.get(s.URL+"/add").want(t, 200, "1")
	id := ann.get(s.URL + "/id").body
	old := ann.cookies(s)

	r.Fill(t)
	ann.get(s.URL+"/get").want(t, 200, "1")
	ann.get(s.URL+"/id").want(t, 200, id)
	for what, a := range map[string]answer{
		"a write":       ann.get(s.URL + "/add"),
		"a login":       ann.get(s.URL + "/login"),
		"a new session": newVisitor(t).get(s.URL + "/add"),
	} {
		if a.StatusCode != 503 || a.sets() || strings.Contains(a.body, "OOM") {
			t.Errorf("%s: %d %q, cookie %v", what, a.StatusCode, a.body, a.sets())
		}
	}
	if len(s.log.Lines("it is full")) != 3 {
		t.Errorf("the log does not say three times that Redis is full:\n%s", s.log)
	}
	newVisitor(t).get(s.URL+"/get").want(t, 200, "0")
	ann.get(s.URL+"/get").want(t, 200, "1") // a login that failed has ended nothing

	ann.get(s.URL+"/logout").want(t, 200, "")
	thief := with(t, old...)
	thief.get(s.URL+"/get").want(t, 200, "0")
	thief.post(s.URL+"/add").want(t, 409, "*")

	r.Empty(t)
	bob.get(s.URL+"/add").want(t, 200, "2")
	ann.get(s.URL+"/add").want(t, 200, "1")
}

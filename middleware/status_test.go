package middleware_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// A second WriteHeader is a mistake that net/http reports. It does not see one that comes before
// the commit, so the sessions report that, once, with the place.
func TestASuperfluousWriteHeaderIsLogged(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, http.HandlerFunc(answersTwice))
		newVisitor(t).get(s.URL).want(t, 403, "no")
		lines := s.log.Lines("superfluous")
		if len(lines) != 1 || !strings.Contains(lines[0], "answersTwice:") || !strings.Contains(lines[0], "status=403 ignored=500") {
			t.Errorf("log: %q", lines)
		}
	})
}

func answersTwice(w http.ResponseWriter, req *http.Request) {
	session.FromContext(req.Context()).Set("a", 1)
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprint(w, "no")
	w.WriteHeader(http.StatusInternalServerError)
	w.WriteHeader(http.StatusNotFound)
}

package middleware_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// touched makes a handler save a new session.
func touched(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("seen", true)
		h(w, r)
	}
}

// A client that sends its body slowly does not hold its session meanwhile.
func TestASlowBodyHoldsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/form", func(w http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Set("n", 40)
			fmt.Fprint(w, req.PostFormValue("a"))
		})
		s, v := begun(t, r, middleware.Options{LockWait: 5 * time.Second}, mux)
		body, slow := io.Pipe()
		req, err := http.NewRequest(http.MethodPost, s.URL+"/form", body)
		must(t, err)
		req.ContentLength = 7
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		done := make(chan answer, 1)
		go func() { done <- v.do(req) }()
		if _, err := io.WriteString(slow, "a=1"); err != nil { // the server is reading it
			t.Fatal(err)
		}
		v.get(s.URL+"/add").want(t, 200, "2")
		if _, err := io.WriteString(slow, "2345"); err != nil {
			t.Fatal(err)
		}
		slow.Close()
		(<-done).want(t, 200, "12345")
		v.get(s.URL+"/get").want(t, 200, "40")
	})
}

// A second WriteHeader is a mistake that net/http reports. It does not see one that comes before
// the commit, so the sessions report that, once, with the place.
func TestASuperfluousWriteHeaderIsLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
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

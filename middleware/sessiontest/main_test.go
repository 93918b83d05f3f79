package sessiontest_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The guide's functions work in any order. They share a variable, so they do not run in parallel.
func TestTheGuide(tt *testing.T) {
	for name, show := range map[string]func(){
		"Client and Session": showClient, "Session": showSession, "Busy": showBusy,
		"Lose": showLose, "End": showEnd, "Expire": showExpire,
		"Down": showDown, "Full": showFull, "late": showExpectLateChange,
	} {
		tt.Run(name, func(tt *testing.T) {
			t = tt
			show()
		})
	}
}

// app is the program of most tests.
func app(sessions *middleware.Sessions) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/set", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("n", r.FormValue("n"))
	})
	mux.HandleFunc("/get", func(w http.ResponseWriter, r *http.Request) {
		n, _ := session.Get[string](session.FromContext(r.Context()), "n")
		fmt.Fprint(w, n)
	})
	mux.HandleFunc("/login", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Renew()
	})
	mux.HandleFunc("/login-as", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login(r.FormValue("user"))
	})
	mux.HandleFunc("/end-others", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		n, err := sessions.EndAll(r.Context(), s.User(), s.ID())
		s.Renew()
		if fmt.Fprint(w, n); err != nil {
			http.Error(w, "please try again", middleware.Status(err))
		}
	})
	mux.HandleFunc("/logout", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Destroy()
	})
	return sessions.Handler(mux)
}

func one(s *session.Session) { s.Set("n", "1") }

// want sends a POST and checks the response.
func want(t *testing.T, c *http.Client, url string, status int, body string) {
	t.Helper()
	res, err := c.Post(url, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status || body != "*" && string(got) != body {
		t.Errorf("%s is %d %q, error %v; want %d %q", url, res.StatusCode, got, err, status, body)
	}
}

// A fake is a test that may fail without failing the test that runs it.
type fake struct {
	testing.TB

	mu       sync.Mutex // guards the fields below
	failures []string
	cleanups []func()
}

func (f *fake) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, fmt.Sprintf(format, args...))
}

func (f *fake) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *fake) Cleanup(cleanup func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cleanups = append(f.cleanups, cleanup)
}

// failuresOf runs a test to its end and returns its failures.
func failuresOf(t *testing.T, test func(tb testing.TB)) []string {
	t.Helper()
	f := &fake{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, cleanup := range slices.Backward(f.cleanups) {
				cleanup()
			}
		}()
		test(f)
	}()
	<-done
	return f.failures
}

// wantFailure checks that a test fails once, with a text that contains all parts.
func wantFailure(t *testing.T, test func(tb testing.TB), parts ...string) {
	t.Helper()
	failures := failuresOf(t, test)
	if len(failures) != 1 {
		t.Errorf("the test fails with %q, want one failure about %q", failures, parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(failures[0], part) {
			t.Errorf("the test fails with %q, which does not say %q", failures[0], part)
		}
	}
}

// served is a site that serves app.
func served(tb testing.TB, o middleware.Options) *sessiontest.Site {
	tb.Helper()
	st := sessiontest.New(tb, o)
	st.Serve(app(st.Sessions))
	return st
}

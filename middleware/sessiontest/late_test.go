package sessiontest_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// afterwards serves a handler that changes its session after begin, and sends it a request.
func afterwards(tb testing.TB, st *sessiontest.Site, begin func(w http.ResponseWriter, r *http.Request)) {
	st.Serve(st.Sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin(w, r)
		session.FromContext(r.Context()).Set("flash", "ordered")
	})))
	res, err := st.Client(one).Post(st.URL, "", nil)
	if err == nil {
		res.Body.Close()
	}
}

func commit(_ http.ResponseWriter, r *http.Request) {
	_ = session.FromContext(r.Context()).Commit(r.Context())
}

// A change that comes too late fails the test, which is told the call, the key and what had saved
// the session.
func TestALateChangeFailsTheTest(t *testing.T) {
	t.Parallel()
	for by, begin := range map[string]http.HandlerFunc{
		"Commit": commit,
		"Flush":  func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
		"Options.Buffer": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Repeat("x", 70_000)))
		},
	} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(tb testing.TB) {
				afterwards(tb, sessiontest.New(tb, middleware.Options{}), begin)
			}, "Set", `"flash"`, by)
		})
	}
}

// A late change that was expected fails nothing; a second one does, and so does one that does not
// come.
func TestALateChangeMayBeExpected(t *testing.T) {
	t.Parallel()
	if failures := failuresOf(t, func(tb testing.TB) {
		afterwards(tb, sessiontest.New(tb, middleware.Options{}), func(http.ResponseWriter, *http.Request) {}) // in time
		st := sessiontest.New(tb, middleware.Options{})
		st.ExpectLateChange()
		afterwards(tb, st, commit)
	}); len(failures) > 0 {
		t.Errorf("it fails with %q", failures)
	}
	wantFailure(t, func(tb testing.TB) {
		st := sessiontest.New(tb, middleware.Options{})
		st.ExpectLateChange()
		afterwards(tb, st, func(w http.ResponseWriter, r *http.Request) {
			commit(w, r)
			session.FromContext(r.Context()).Delete("expected")
		})
	}, "Set", `"flash"`)
	wantFailure(t, func(tb testing.TB) {
		sessiontest.New(tb, middleware.Options{}).ExpectLateChange()
	}, "1 did not come")
}

// The program's own logger still gets everything.
func TestTheProgramsLogger(t *testing.T) {
	t.Parallel()
	var own strings.Builder
	failures := failuresOf(t, func(tb testing.TB) {
		st := sessiontest.New(tb, middleware.Options{Logger: slog.New(slog.NewTextHandler(&own, nil)).With("app", "shop")})
		st.ExpectLateChange()
		afterwards(tb, st, commit)
	})
	if len(failures) > 0 || !strings.Contains(own.String(), "changed after it was saved") || !strings.Contains(own.String(), "app=shop") {
		t.Errorf("failures %q, log %q", failures, own.String())
	}
}

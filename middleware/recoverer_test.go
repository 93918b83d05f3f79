package middleware_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// If a handler panics before the response, the response is a 500. After a later panic the response must not look
// complete.
func TestRecoverer(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		handler http.HandlerFunc
		status  int
		cutOff  bool
	}{
		"no panic":                        {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") }, http.StatusOK, false},
		"before the response":             {func(http.ResponseWriter, *http.Request) { panic("out of tea") }, http.StatusInternalServerError, false},
		"after an informational response": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); panic("out of tea") }, http.StatusInternalServerError, false},
		"after the header":                {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); panic("out of tea") }, 0, true},
		"after a part of the body":        {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "half"); panic("out of tea") }, 0, true},
		"after a flush":                   {func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); panic("out of tea") }, 0, true},
		"after a copy": {func(w http.ResponseWriter, _ *http.Request) {
			io.Copy(w, strings.NewReader("half"))
			panic("out of tea")
		}, 0, true},
		"because of a status that does not exist": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(1000) }, http.StatusInternalServerError, false},
		"with http.ErrAbortHandler":               {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(middleware.Recoverer(one.handler))
			defer server.Close()
			res, err := http.Get(server.URL)
			if err == nil {
				var body []byte
				body, err = io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode == http.StatusInternalServerError && strings.Contains(string(body), "tea") {
					t.Errorf("the visitor sees %q", body)
				}
			}
			if one.cutOff != (err != nil) || !one.cutOff && res.StatusCode != one.status {
				t.Errorf("response %v, error %v; want status %d, cut off %v", res, err, one.status, one.cutOff)
			}
		})
	}
}

// The 500 has nothing that the handler has said of the response that it wanted to send.
func TestTheErrorOfRecovererIsNotCached(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	middleware.Recoverer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{"Cache-Control": "public, max-age=31536000", "Content-Encoding": "gzip", "Etag": `"1"`, "Last-Modified": "yesterday", "Expires": "tomorrow", "CDN-Cache-Control": "max-age=60", "Surrogate-Control": "max-age=60"} {
			w.Header().Set(name, value)
		}
		panic("out of tea")
	})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	h := w.Header()
	if h.Get("Cache-Control") != "no-store" || len(h) != 3 { // and what http.Error adds
		t.Errorf("%v", h)
	}
}

// A writer that cannot be flushed cannot be flushed through Recoverer either, and the response has not begun then.
func TestRecovererTellsThatThereIsNoFlush(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	middleware.Recoverer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Flush = %v", err)
		}
		panic("out of tea")
	})).ServeHTTP(struct{ http.ResponseWriter }{w}, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("status %d", w.Code)
	}
}

// A framework inside can still stream: gin asserts http.CloseNotifier, although it is deprecated.
func TestRecovererTellsOfAClientThatHasGone(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	w := httptest.NewRecorder()
	middleware.Recoverer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		gone := w.(interface{ CloseNotify() <-chan bool }).CloseNotify()
		leave()
		<-gone
	})).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if w.Code != http.StatusOK {
		t.Errorf("the handler has panicked: %d", w.Code)
	}
}

// A handler inside can still hijack the connection, but only if that is possible.
func TestRecovererCanBeHijacked(t *testing.T) {
	t.Parallel()
	took := make(chan error, 1)
	server := httptest.NewServer(middleware.Recoverer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if took <- err; err == nil {
			conn.Close()
			panic("too late for a response")
		}
	})))
	defer server.Close()
	_, err := http.Get(server.URL)
	if hijacked := <-took; err == nil || hijacked != nil {
		t.Errorf("errors %v and %v", err, hijacked)
	}
	middleware.Recoverer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := w.(http.Hijacker); ok {
			t.Error("a recorder cannot be hijacked")
		}
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
}

// Safe methods wait for nobody. All others are exclusive.
func TestByMethod(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]middleware.Mode{
		"GET": middleware.Optimistic, "HEAD": middleware.Optimistic, "OPTIONS": middleware.Optimistic, "TRACE": middleware.Optimistic,
		"POST": middleware.Exclusive, "PUT": middleware.Exclusive, "DELETE": middleware.Exclusive, "PATCH": middleware.Exclusive,
		"PROPFIND": middleware.Exclusive, "get": middleware.Exclusive,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Method = method
		if got := middleware.ByMethod(r); got != want {
			t.Errorf("%s is %v, want %v", method, got, want)
		}
	}
}

// What the handler has set before a panic is not saved: that is why Recoverer is around the sessions.
func TestAPanicBelowRecovererSavesNothing(t *testing.T) {
	t.Parallel()
	st := sessiontest.New(t, middleware.Options{})
	st.Serve(middleware.Recoverer(st.Sessions.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("half", true)
		panic("out of tea")
	}))))
	ann := st.Client(func(s *session.Session) { s.Set("cart", "tea") })
	res, err := ann.Get(st.URL)
	must(t, err)
	res.Body.Close()
	if kept := st.Session(ann); res.StatusCode != http.StatusInternalServerError || kept.Len() != 1 {
		t.Errorf("status %d, %d values", res.StatusCode, kept.Len())
	}
}

package sessiontest_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/store"
)

// A Redis that is full here behaves as a real one does.
func TestFullIsAsARealOne(t *testing.T) {
	t.Parallel()
	st := sessiontest.New(t, middleware.Options{})
	embedded := whatAFullRedisDoes(t, st.Sessions, func() func() { return st.Full() })

	r := redistest.Real(t, "--maxmemory-policy", "noeviction")
	o := middleware.Options{Keys: [][]byte{make([]byte, 32)}, Logger: slog.New(slog.DiscardHandler)}
	real, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), o)
	if err != nil {
		t.Fatal(err)
	}
	want := whatAFullRedisDoes(t, real, func() func() {
		r.Do(t, "CONFIG", "SET", "maxmemory", "1")
		return func() { r.Do(t, "CONFIG", "SET", "maxmemory", "0") }
	})
	if embedded != want {
		t.Errorf("embedded:\n%sreal:\n%s", embedded, want)
	}
}

// whatAFullRedisDoes returns the answers to all kinds of requests: first while Redis is full, or
// becomes so while the request holds its session, and then once more. Each has a session of its own.
func whatAFullRedisDoes(t *testing.T, sessions *middleware.Sessions, fill func() (free func())) string {
	t.Helper()
	var duringHandler func()
	site := sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		duringHandler()
		app(sessions).ServeHTTP(w, r)
	}))
	send := func(path string, cookies []*http.Cookie) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		site.ServeHTTP(w, r)
		return w.Result()
	}
	answers := ""
	for _, path := range []string{"/get", "/set?n=2", "/set?n=1", "/login", "/login-as?user=ann", "/logout", "begin"} {
		for _, held := range []bool{false, true} {
			duringHandler = func() {}
			cookies := send("/set?n=1", nil).Cookies()
			if len(cookies) != 1 {
				t.Fatal("a session cannot be made")
			}
			if path == "begin" {
				path, cookies = "/set?n=1", nil
			}
			free := func() {}
			if held {
				duringHandler = func() { free = fill() }
			} else {
				free = fill()
			}
			full := send(path, cookies).Status
			free()
			duringHandler = func() {}
			again := send(path, cookies).Status
			answers += fmt.Sprintf("%s, held %v: %s, then %s\n", path, held, full, again)
		}
	}
	return answers
}

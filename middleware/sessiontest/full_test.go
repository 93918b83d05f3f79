package sessiontest_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// A Redis that is full here behaves as a real one does.
func TestFullIsAsARealOne(t *testing.T) {
	t.Parallel()
	st := sessiontest.New(t, middleware.Options{})
	embedded := whatAFullRedisDoes(t, st.Sessions, func() func() { return st.Full() })

	r := redistest.Real(t, "--maxmemory-policy", "noeviction")
	real, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), middleware.Options{
		Keys:   [][]byte{make([]byte, 32)},
		Logger: slog.New(slog.DiscardHandler),
	})
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

// whatAFullRedisDoes returns the answers to all kinds of requests while Redis is full, and after
// that. Each is made with a session of its own.
func whatAFullRedisDoes(t *testing.T, sessions *middleware.Sessions, full func() (free func())) string {
	t.Helper()
	site := app(sessions)
	send := func(path string, cookies []*http.Cookie) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		site.ServeHTTP(w, r)
		return w.Result()
	}
	paths := []string{"/get", "/set?n=2", "/set?n=1", "/login", "/logout"}
	cookies := map[string][]*http.Cookie{"no cookie": nil}
	for _, path := range paths {
		res := send("/set?n=1", nil)
		if cookies[path] = res.Cookies(); res.StatusCode != 200 || len(cookies[path]) != 1 {
			t.Fatalf("a session cannot be made: %s", res.Status)
		}
	}
	answers := ""
	end := full()
	for range 2 {
		for _, path := range paths {
			answers += fmt.Sprintf("%s: %s\n", path, send(path, cookies[path]).Status)
		}
		answers += fmt.Sprintf("begin: %s\n", send("/set?n=1", nil).Status)
		end()
	}
	return answers
}

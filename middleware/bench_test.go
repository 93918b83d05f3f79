package middleware_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// The cost of one request, without net/http and without the work of Redis, which is a process of its own. The
// commands below show which function allocates. Each function is charged with what it calls outside this module:
//
//	go test -run '^$' -bench Request/exclusive -benchtime 20000x \
//		-memprofile mem.out -memprofilerate 1 -o bench.test ./middleware
//	go tool pprof -sample_index alloc_objects -top -focus Sessions -show latchkey/ bench.test mem.out

// BenchmarkRequest is one visitor, one request after another.
func BenchmarkRequest(b *testing.B) { benchRequest(b) }

// BenchmarkObserved is BenchmarkRequest with an observer that does nothing.
func BenchmarkObserved(b *testing.B) {
	benchRequest(b, observerFunc(func(context.Context, middleware.Event) {}))
}

func benchRequest(b *testing.B, observers ...middleware.Observer) {
	st, err := store.Open(redistest.Real(b).URL, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = st.Close() })
	sessions, err := middleware.New(st, middleware.Options{
		Keys:      [][]byte{testKey},
		Observers: observers,
		Mode: func(r *http.Request) middleware.Mode {
			switch r.Method {
			case http.MethodGet:
				return middleware.ReadOnly
			case http.MethodHead:
				return middleware.Optimistic
			}
			return middleware.Exclusive
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	visit := func(count bool) http.Handler {
		return sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s := session.FromContext(r.Context())
			n, ok := session.Get[int](s, "visits")
			if count {
				s.Set("visits", n+1)
			}
			if ok {
				_, _ = w.Write(welcome)
			}
		}))
	}
	cookie := login(b, sessions)

	b.Run("exclusive", func(b *testing.B) { serve(b, visit(true), http.MethodPost, cookie, welcome) })
	b.Run("readonly", func(b *testing.B) { serve(b, visit(false), http.MethodGet, cookie, welcome) })
	b.Run("optimistic", func(b *testing.B) { serve(b, visit(false), http.MethodHead, cookie, welcome) })
	b.Run("optimistic-writes", func(b *testing.B) { serve(b, visit(true), http.MethodHead, cookie, welcome) })
	b.Run("nocookie", func(b *testing.B) { serve(b, visit(false), http.MethodPost, "", nil) })
}

var welcome = []byte("welcome back\n")

// login begins an ordinary session and returns its cookie.
func login(b *testing.B, sessions *middleware.Sessions) string {
	w := &recorder{header: http.Header{}}
	sessions.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Set("user", "8c3f0f2e-5f0a-4d8e-9a36-0d2a6a3f7b11")
		s.Set("name", "Ada Lovelace")
		s.Set("csrf", "Xq8yGmB1Zr0uVt5wN3kD7cJ2hS9fLp4A")
		s.Set("cart", struct {
			Items []int  `json:"items"`
			Coin  string `json:"coin"`
		}{[]int{4711, 815}, "EUR"})
		s.Set("visits", 1000)
	})).ServeHTTP(w, request(http.MethodPost, ""))
	cookie, err := http.ParseSetCookie(w.header.Get("Set-Cookie"))
	if err != nil {
		b.Fatal(err)
	}
	return cookie.Name + "=" + cookie.Value
}

// serve makes h answer the same request repeatedly.
func serve(b *testing.B, h http.Handler, method, cookie string, want []byte) {
	ctx, cancel := context.WithCancel(context.Background()) // as a server's are: it can end
	defer cancel()
	r := request(method, cookie).WithContext(ctx)
	w := &recorder{header: http.Header{}}
	h.ServeHTTP(w, r) // connects
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		w.body = w.body[:0]
		h.ServeHTTP(w, r)
		if w.status > http.StatusOK || string(w.body) != string(want) {
			b.Fatalf("%d %q", w.status, w.body)
		}
	}
}

func request(method, cookie string) *http.Request {
	r := &http.Request{Method: method, URL: &url.URL{Path: "/cart/add"}, Header: http.Header{}}
	if cookie != "" {
		r.Header.Set("Cookie", "theme=dark; "+cookie)
	}
	return r
}

// A recorder is a ResponseWriter that costs nothing.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (w *recorder) Header() http.Header    { return w.header }
func (w *recorder) WriteHeader(status int) { w.status = status }
func (w *recorder) Write(p []byte) (int, error) {
	w.body = append(w.body, p...)
	return len(p), nil
}

package middleware_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// touched makes a handler save a new session.
func touched(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("seen", true)
		h(w, r)
	}
}

// What net/http does with a handler's answer, it does with sessions around it.
func TestAnswersAreThoseOfNetHTTP(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data.txt")
	content := bytes.Repeat([]byte("0123456789"), 20_000) // three times the buffer
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	handlers := map[string]http.HandlerFunc{
		"empty":      func(http.ResponseWriter, *http.Request) {},
		"body":       func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>sniffed") },
		"large body": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) },
		"many writes": func(w http.ResponseWriter, _ *http.Request) {
			for range 30_000 {
				_, _ = io.WriteString(w, "0123456789")
			}
		},
		"status":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418); fmt.Fprint(w, "teapot") },
		"two":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); w.WriteHeader(500) },
		"error":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"not found": http.NotFound,
		"redirect":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/next", http.StatusSeeOther) },
		"204": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			_, err := w.Write([]byte("x"))
			if err != http.ErrBodyNotAllowed {
				panic(fmt.Sprint("body of a 204: ", err))
			}
			if n, err := io.Copy(w, io.LimitReader(strings.NewReader(""), 1)); err != nil {
				panic(fmt.Sprint("no body of a 204: ", n, err))
			}
		},
		"304": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("ETag", `"a"`); w.WriteHeader(304) },
		"length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			_, _ = io.WriteString(w, "12345")
			if n, err := io.WriteString(w, "6"); err != http.ErrContentLength {
				panic(fmt.Sprint("more than declared: ", n, err))
			}
		},
		"header too late": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			w.Header().Set("X-Late", "lost")
			fmt.Fprint(w, "x")
		},
		"header changed in place": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Late", "in time")
			w.WriteHeader(200)
			w.Header()["X-Late"][0] = "late"
			fmt.Fprint(w, "x")
		},
		"header deleted too late": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Late", "in time")
			w.WriteHeader(200)
			w.Header().Del("X-Late")
			fmt.Fprint(w, "x")
		},
		"trailers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			fmt.Fprint(w, "x")
			w.Header().Set("X-Sum", "42")
			w.Header().Set(http.TrailerPrefix+"X-More", "43")
		},
		"file": func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) },
		"small file": func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), strings.NewReader("small"))
		},
		"read from": func(w http.ResponseWriter, _ *http.Request) {
			if n, err := w.(io.ReaderFrom).ReadFrom(bytes.NewReader(content)); err != nil || n != int64(len(content)) {
				panic(fmt.Sprint(n, err))
			}
		},
		"controller": func(w http.ResponseWriter, _ *http.Request) {
			c := http.NewResponseController(w)
			if err := c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				panic(err)
			}
			if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				panic(err)
			}
			fmt.Fprint(w, "x")
			if err := c.Flush(); err != nil {
				panic(err)
			}
			fmt.Fprint(w, "y")
		},
	}
	r := redistest.Embedded(t)
	sessions, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), middleware.Options{
		Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	requests := []struct{ method, rangeHeader string }{{"GET", ""}, {"HEAD", ""}, {"GET", "bytes=5-9"}, {"GET", "bytes=70000-70009"}}
	for name, h := range handlers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain, sessioned := quiet(h), quiet(sessions.Handler(touched(h)))
			defer plain.Close()
			defer sessioned.Close()
			v := with(t) // no cookie: each request begins a session
			for _, q := range requests {
				ask := func(url string) answer {
					req, err := http.NewRequest(q.method, url, nil)
					if err != nil {
						t.Fatal(err)
					}
					if q.rangeHeader != "" {
						req.Header.Set("Range", q.rangeHeader)
					}
					return v.do(req)
				}
				want, got := ask(plain.URL), ask(sessioned.URL)
				if want.err != nil || got.err != nil {
					t.Fatalf("%v: %v, %v", q, want.err, got.err)
				}
				if got.StatusCode != want.StatusCode || got.body != want.body {
					t.Errorf("%v: %d with %d bytes; without sessions %d with %d bytes", q, got.StatusCode, len(got.body), want.StatusCode, len(want.body))
				}
				if !got.sets() {
					t.Errorf("%v: no cookie", q)
				}
				// Where net/http buffers less than we do, it cannot know the length.
				if want.ContentLength >= 0 && got.ContentLength != want.ContentLength {
					t.Errorf("%v: Content-Length %d; without sessions %d", q, got.ContentLength, want.ContentLength)
				}
				for _, key := range []string{"Content-Type", "Location", "ETag", "X-Late", "Content-Range", "Accept-Ranges"} {
					if got.Header.Get(key) != want.Header.Get(key) {
						t.Errorf("%v: %s is %q; without sessions %q", q, key, got.Header.Get(key), want.Header.Get(key))
					}
				}
				if fmt.Sprint(got.Trailer) != fmt.Sprint(want.Trailer) {
					t.Errorf("%v: trailers %v; without sessions %v", q, got.Trailer, want.Trailer)
				}
			}
		})
	}
}

// quiet serves h and logs nothing of its mistakes, which are made on purpose.
func quiet(h http.Handler) *httptest.Server {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	return srv
}

// All defaults work over HTTP/2 with TLS, including the __Host- cookie.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		sessions, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), middleware.Options{
			Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		mux := app()
		mux.HandleFunc("/late", func(w http.ResponseWriter, req *http.Request) {
			w.(http.Flusher).Flush()
			session.FromContext(req.Context()).Set("n", 9)
		})
		srv := httptest.NewUnstartedServer(sessions.Handler(mux))
		srv.EnableHTTP2 = true
		srv.StartTLS()
		defer srv.Close()
		v := newVisitor(t)
		v.Transport = srv.Client().Transport
		a := v.get(srv.URL + "/add")
		a.want(t, 200, "1")
		if a.ProtoMajor != 2 {
			t.Fatalf("%s", a.Proto)
		}
		v.get(srv.URL+"/add").want(t, 200, "2")
		if a := v.post(srv.URL + "/late"); a.err == nil {
			t.Errorf("the answer looks complete: %d %q", a.StatusCode, a.body)
		}
		v.get(srv.URL+"/add").want(t, 200, "3")
	})
}

// A client that sends its body slowly does not hold its session meanwhile.
func TestASlowBodyHoldsNothing(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/form", func(w http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Set("n", 40)
			fmt.Fprint(w, req.PostFormValue("a"))
		})
		s, v := begun(t, r, middleware.Options{LockWait: 5 * time.Second}, mux)
		body, slow := io.Pipe()
		req, err := http.NewRequest(http.MethodPost, s.URL+"/form", body)
		if err != nil {
			t.Fatal(err)
		}
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

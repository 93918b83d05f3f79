package middleware_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/testdata/redistest"
	"github.com/coder/websocket"
)

// touched makes a handler's answer one that saves a new session.
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
			if n, err := io.Copy(w, strings.NewReader("")); err != nil {
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
	sessions, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), middleware.Options{Keys: [][]byte{testKey}})
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

// quiet serves h and says nothing about its mistakes, which are made on purpose.
func quiet(h http.Handler) *httptest.Server {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	return srv
}

// A stream of events holds nothing once it has begun, and arrives as it is sent.
func TestServerSentEvents(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	more := make(chan struct{})
	mux := app()
	mux.HandleFunc("/events", func(w http.ResponseWriter, req *http.Request) {
		session.FromContext(req.Context()).Set("n", 10)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			<-more
		}
	})
	s := newSite(t, r.Pool(t, 4), middleware.Options{LockWait: 5 * time.Second}, mux)
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	res, err := v.Get(s.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for i := range 3 {
		if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) {
			t.Fatalf("event %d: %q", i, lines.Text())
		}
		lines.Scan()                                       // the empty line
		v.get(s.URL+"/add").want(t, 200, fmt.Sprint(11+i)) // while the stream goes on
		more <- struct{}{}
	}
}

// A websocket commits as it takes the connection over; the cookie is on its 101.
func TestWebsocket(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/ws", func(w http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Set("n", 20)
			c, err := websocket.Accept(w, req, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.CloseNow()
			for {
				kind, data, err := c.Read(req.Context())
				if err != nil {
					return
				}
				if err := c.Write(req.Context(), kind, append([]byte("echo "), data...)); err != nil {
					t.Error(err)
				}
			}
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := newVisitor(t)
		c, res, err := websocket.Dial(t.Context(), s.URL+"/ws", &websocket.DialOptions{HTTPClient: v.Client})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		if res.StatusCode != 101 || res.Header.Get("Set-Cookie") == "" {
			t.Errorf("%d %v", res.StatusCode, res.Header)
		}
		v.Jar.SetCookies(res.Request.URL, res.Cookies())
		if err := c.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, data, err := c.Read(t.Context()); err != nil || string(data) != "echo hello" {
			t.Fatalf("%q %v", data, err)
		}
		u, _ := url.Parse(s.URL)
		with(t, v.Jar.Cookies(u)...).get(s.URL+"/add").want(t, 200, "21") // while the websocket is open
		if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Error(err)
		}
	})
}

// A websocket whose session cannot be saved is refused, with the error.
func TestHijackWithAFailedCommit(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	mux := app()
	mux.HandleFunc("/ws", func(w http.ResponseWriter, req *http.Request) {
		loseLock(t, r, req)
		session.FromContext(req.Context()).Set("n", 20)
		if c, err := websocket.Accept(w, req, nil); err == nil {
			c.CloseNow()
			t.Error("accepted")
		}
	})
	s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	_, res, err := websocket.Dial(t.Context(), s.URL+"/ws", &websocket.DialOptions{HTTPClient: v.Client})
	if err == nil || res.StatusCode != 503 || res.Header.Get("Sec-Websocket-Accept") != "" {
		t.Errorf("%v %+v", err, res)
	}
}

// Behind a session a reverse proxy streams, upgrades, and passes trailers on.
func TestReverseProxy(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	more := make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/ws" {
			c, err := websocket.Accept(w, req, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.CloseNow()
			_ = c.Write(req.Context(), websocket.MessageText, []byte("through the proxy"))
			_, _, _ = c.Read(req.Context())
			return
		}
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprint(w, "first ")
		w.(http.Flusher).Flush()
		<-more
		fmt.Fprint(w, "second")
		w.Header().Set("X-Sum", "42")
	}))
	defer backend.Close()
	u, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(u) }}
	s := newSite(t, r.Pool(t, 4), middleware.Options{}, touched(forward.ServeHTTP))
	v := newVisitor(t)

	res, err := v.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, 6)
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "first " {
		t.Fatalf("%q %v", first, err)
	}
	close(more)
	rest, err := io.ReadAll(res.Body)
	if err != nil || string(rest) != "second" || res.Trailer.Get("X-Sum") != "42" || res.Header.Get("Set-Cookie") == "" {
		t.Errorf("%q %v, trailers %v, header %v", rest, err, res.Trailer, res.Header)
	}

	c, upgraded, err := websocket.Dial(t.Context(), s.URL+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if _, data, err := c.Read(t.Context()); err != nil || string(data) != "through the proxy" || upgraded.Header.Get("Set-Cookie") == "" {
		t.Errorf("%q %v %v", data, err, upgraded.Header)
	}
	_ = c.Close(websocket.StatusNormalClosure, "")
}

// Over HTTP/2 with TLS all defaults are at work, the __Host- cookie included.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
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
}

// A client that sends its body slowly does not hold its session meanwhile.
func TestASlowBodyHoldsNothing(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/form", func(w http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Set("n", 40)
			fmt.Fprint(w, req.PostFormValue("a"))
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{LockWait: 5 * time.Second}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		body, slow := io.Pipe()
		req, err := http.NewRequest(http.MethodPost, s.URL+"/form", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 7
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		done := make(chan answer, 1)
		go func() { done <- v.do(req) }()
		if _, err := io.WriteString(slow, "a=1"); err != nil { // the server is at it
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

package middleware_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/coder/websocket"
)

// A stream of events holds no session once it has begun, and arrives as it is sent.
func TestServerSentEvents(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
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
		s, v := begun(t, r, middleware.Options{LockWait: 5 * time.Second}, mux)
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
	})
}

// A websocket commits as it takes over the connection; its 101 has the cookie.
func TestWebsocket(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
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
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/ws", func(w http.ResponseWriter, req *http.Request) {
			loseLock(t, r, req)
			session.FromContext(req.Context()).Set("n", 20)
			if c, err := websocket.Accept(w, req, nil); err == nil {
				c.CloseNow()
				t.Error("accepted")
			}
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		_, res, err := websocket.Dial(t.Context(), s.URL+"/ws", &websocket.DialOptions{HTTPClient: v.Client})
		if err == nil || res.StatusCode != 503 || res.Header.Get("Sec-Websocket-Accept") != "" {
			t.Errorf("%v %+v", err, res)
		}
	})
}

// A reverse proxy inside the sessions streams, upgrades, and passes trailers on.
func TestReverseProxy(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
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
	})
}

// Frameworks that offer streams, such as gin, assert that a writer can say when its client goes.
func TestCloseNotify(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		streaming, gone := make(chan struct{}), make(chan bool)
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			client := w.(interface{ CloseNotify() <-chan bool }).CloseNotify()
			w.(http.Flusher).Flush()
			select {
			case <-client:
				t.Error("gone before it has left")
			default:
			}
			close(streaming)
			gone <- <-client
		}))
		c := dial(t, s.Server)
		c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		<-streaming
		c.Close()
		if !<-gone {
			t.Error("the channel was closed")
		}
	})
}

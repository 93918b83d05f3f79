package differential

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
)

// backend is what the proxies in these cases are for. The test starts it.
var backend atomic.Pointer[httptest.Server]

func newBackend() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "from behind") })
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 200_000)) })
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	mux.HandleFunc("/trailer", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "17")
		w.Header().Set(http.TrailerPrefix+"X-More", "18")
	})
	mux.HandleFunc("/events", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("/abort", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/upgrade", func(w http.ResponseWriter, r *http.Request) {
		conn, stream, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := stream.ReadString('\n')
		io.WriteString(conn, line)
	})
	return httptest.NewServer(mux)
}

func proxyCases() []testCase {
	// proxied passes the request on to a path of the backend.
	proxied := func(path string) handler {
		return func(x *exchange, w http.ResponseWriter, r *http.Request) {
			target, err := url.Parse(backend.Load().URL + path)
			if err != nil {
				x.note("%v", err)
				return
			}
			proxy := &httputil.ReverseProxy{
				Rewrite: func(p *httputil.ProxyRequest) {
					p.Out.URL = target
					p.Out.Header.Del("Cookie")
				},
				ErrorLog: log.New(x, "proxy: ", 0),
			}
			proxy.ServeHTTP(w, r)
		}
	}
	upgradeThrough := upgrade
	upgradeThrough.after, upgradeThrough.then = "", "ping\n" // a ReverseProxy drops what comes sooner
	return []testCase{
		{name: "proxy: short", handler: proxied("/short")},
		{name: "proxy: long", session: early, handler: proxied("/long")},
		{name: "proxy: a body", request: post("body"), handler: proxied("/echo")},
		{name: "proxy: a trailer", session: early, handler: proxied("/trailer")},
		{name: "proxy: events", session: early, handler: proxied("/events")},
		{name: "proxy: an answer that is cut off", session: early, handler: proxied("/abort")},
		{name: "proxy: an upgrade", on: http1[1:], session: early, request: upgradeThrough, handler: proxied("/upgrade")},
	}
}

// Command request makes requests of one kind, and prints the trace of the last one as JSON. It is built with
// every function of the library calling trace.Enter: see package way.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/a2139e8d/latchkey/internal/way/trace"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// handlers are what requests do with their session, by their kind.
var handlers = map[string]http.HandlerFunc{
	"exclusive": increment,
	"read": func(w http.ResponseWriter, r *http.Request) {
		n, _ := session.Get[int](session.FromContext(r.Context()), "n")
		fmt.Fprintln(w, n)
	},
	"optimistic": increment,
	"login": func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("user")
	},
}

func increment(w http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	n, _ := session.Get[int](s, "n")
	s.Set("n", n+1)
	fmt.Fprintln(w, n+1)
}

func run(url, kind string) error {
	st, err := store.Open(url, store.Options{})
	if err != nil {
		return err
	}
	defer st.Close()
	o := middleware.Options{Keys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}}
	if kind == "read" || kind == "optimistic" {
		o.Mode = func(r *http.Request) middleware.Mode {
			if r.Method == http.MethodPost {
				return middleware.Exclusive
			}
			return middleware.Optimistic
		}
	}
	sessions, err := middleware.New(st, o)
	if err != nil {
		return err
	}
	first := serve(sessions, http.MethodPost, increment, nil)
	method := http.MethodPost
	if o.Mode != nil {
		method = http.MethodGet
	}
	for range 2 { // the first request does some things only once
		trace.Start()
		w := serve(sessions, method, handlers[kind], first.Result().Cookies())
		if calls := trace.Stop(); w.Code != http.StatusOK {
			return fmt.Errorf("%d %s", w.Code, w.Body)
		} else if err = json.NewEncoder(os.Stdout).Encode(calls); err != nil {
			return err
		}
		if kind == "login" {
			break // a second request would have a session that has ended
		}
	}
	return nil
}

// serve makes a request with these cookies.
func serve(sessions *middleware.Sessions, method string, h http.HandlerFunc, cookies []*http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "https://example.com/", nil)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer trace.Enter("", "the handler")()
		h(w, r)
	})).ServeHTTP(w, r)
	return w
}

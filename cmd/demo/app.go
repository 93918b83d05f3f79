package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

//go:embed page
var page embed.FS

//go:embed home.html
var homeHTML string

var homePage = template.Must(template.New("home").Parse(homeHTML))

// home is the first page.
func home(c config) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = homePage.Execute(w, map[string]any{ // the client may be gone
			"Redis": c.redisKind(), "Lock": c.lock, "LockIs": lockIs[c.lock], "Milliseconds": c.comparedWork().Milliseconds(),
			"Debug": c.isPrivate(),
		})
	}
}

// pageWork is how long the page's requests work at least. A browser runs only about six requests at once. On a fast
// machine, requests that take nearly no time would hardly overlap, so most values would be kept without a lock, too.
const pageWork = 10 * time.Millisecond

func (c config) comparedWork() time.Duration { return max(c.work, pageWork) }

// mainCookie is the name of the cookie of the demo's main sessions.
const mainCookie = "latchkey-demo"

// sessions is a middleware that gives a handler a session, with a lock or without.
type sessions func(http.Handler) http.Handler

// newApp returns the whole demo:
//
//	GET  /         the page
//	POST /set      stores param_<name> = 1; form field name
//	POST /incr     adds 1 to n
//	GET  /result   the number of param_ keys
//	GET  /params   their names, as JSON
//	GET  /count    the value of n
//	POST /reset    empties the session
//	POST /login    renews the session's ID
//	POST /logout   destroys the session
//	GET  /healthz  whether Redis replies
//	GET  /info     the kinds of Redis and lock, as JSON
//	GET  /devices  the second page, see devices
//	GET  /user     the name of the user who is signed in there
//	GET  /debug/sessions  who holds and who waits; only if -addr is a loopback address
//
// -lock names the lock. The page compares sessions without and with a lock, so the same endpoints are also at
// /compare/none/… and /compare/lock/…, each with its own session, and with a /set that works for at least pageWork.
// Streams end when ctx ends.
func newApp(ctx context.Context, c config, r *server, st *store.Store, log *slog.Logger) (http.Handler, error) {
	ofDevices, err := lockedSessions(c, st, log, mainCookie, sorryFor)
	if err != nil {
		return nil, err
	}
	compared := c.lock
	if compared == lockNone {
		compared = lockSpin
	}
	mux := http.NewServeMux()
	for path, way := range map[string]struct {
		lock, cookie string
		work         time.Duration
	}{
		"":              {c.lock, mainCookie, c.work},
		"/compare/none": {lockNone, mainCookie + "-compare", c.comparedWork()},
		"/compare/lock": {compared, mainCookie + "-compare", c.comparedWork()},
	} {
		by := c
		by.lock = way.lock
		with, err := newSessions(by, r, st, log, way.cookie)
		if err != nil {
			return nil, err
		}
		mount(mux, path, with, way.work)
	}
	devices{ofDevices, log, ctx}.mount(mux)
	if c.isPrivate() {
		mux.Handle("GET /debug/sessions", ofDevices.Debug())
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, req *http.Request) {
		if err := st.Ping(req.Context()); err != nil {
			log.Error("Redis does not reply", "error", err) // with its address, which the visitor must not see
			http.Error(w, "Redis does not reply.", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, map[string]string{"redis": c.redisKind(), "lock": c.lock})
	})
	files, err := fs.Sub(page, "page")
	if err != nil {
		return nil, err
	}
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /{$}", home(c))
	return http.NewCrossOriginProtection().Handler(secure(mux)), nil
}

// newSessions returns sessions with the lock that c names: the sessions of this library, or sessions without
// a lock, perhaps with a lock of package locker around their requests.
func newSessions(c config, r *server, st *store.Store, log *slog.Logger, cookie string) (sessions, error) {
	if c.lock == lockSpin {
		s, err := lockedSessions(c, st, log, cookie, nil)
		if err != nil {
			return nil, err
		}
		return s.Handler, nil
	}
	u := &unlocked{pool: r.pools[0], cookie: cookie + "-" + c.lock, ttl: c.ttl, log: log}
	if c.lock == lockNone {
		return u.handler, nil
	}
	return u.around(newLocker(c, r.pools)), nil
}

// lockedSessions shows all that a program needs for locked sessions.
func lockedSessions(c config, st *store.Store, log *slog.Logger, cookie string,
	onError func(http.ResponseWriter, *http.Request, error)) (*middleware.Sessions, error) {
	return middleware.New(st, middleware.Options{
		Keys:       c.keys,
		TTL:        c.ttl,
		Lifetime:   max(c.ttl, 24*time.Hour),
		LockWait:   c.lockWait,
		MaxHold:    c.maxHold(),
		MaxWaiters: c.maxWaiters(),
		Cookie:     http.Cookie{Name: cookie}, // plain HTTP: no __Host-, no Secure
		Device:     device,
		Logger:     log,
		OnError:    onError,
		Mode: func(req *http.Request) middleware.Mode {
			if req.Method == http.MethodGet || req.Method == http.MethodHead {
				return middleware.ReadOnly
			}
			return middleware.Exclusive
		},
	})
}

// mount adds the session's endpoints below a path.
func mount(mux *http.ServeMux, path string, with sessions, work time.Duration) {
	for pattern, handler := range map[string]http.HandlerFunc{
		"POST /set":    set(work),
		"POST /incr":   incr,
		"POST /reset":  reset,
		"POST /login":  login,
		"POST /logout": logout,
		"GET /result":  result,
		"GET /params":  params,
		"GET /count":   count,
	} {
		method, rest, _ := strings.Cut(pattern, " ")
		mux.Handle(method+" "+path+rest, with(handler))
	}
}

func set(work time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PostFormValue("name")
		if name == "" {
			http.Error(w, "form field name is missing", http.StatusBadRequest)
			return
		}
		select { // stands for a real handler's work
		case <-time.After(work):
		case <-r.Context().Done():
		}
		session.FromContext(r.Context()).Set("param_"+name, 1)
		fmt.Fprintln(w, "ok")
	}
}

func incr(w http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	n, _ := session.Get[int](s, "n") // absent is 0
	s.Set("n", n+1)
	fmt.Fprintln(w, n+1)
}

func count(w http.ResponseWriter, r *http.Request) {
	n, _ := session.Get[int](session.FromContext(r.Context()), "n") // absent is 0
	fmt.Fprintln(w, n)
}

func reset(w http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	s.Clear()
	s.Set("since", time.Now()) // an empty session would not be stored
	w.WriteHeader(http.StatusNoContent)
}

func login(w http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	s.Renew() // an ID from before the login must not be valid afterwards
	s.Set("user", "demo")
	w.WriteHeader(http.StatusNoContent)
}

func logout(w http.ResponseWriter, r *http.Request) {
	session.FromContext(r.Context()).Destroy()
	markSignedIn(w, false)
	w.WriteHeader(http.StatusNoContent)
}

func result(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, len(paramNames(r)))
}

func params(w http.ResponseWriter, r *http.Request) {
	answerJSON(w, paramNames(r))
}

func paramNames(r *http.Request) []string {
	names := []string{} // [] in JSON, not null
	for key := range session.FromContext(r.Context()).Keys() {
		if name, ok := strings.CutPrefix(key, "param_"); ok {
			names = append(names, name)
		}
	}
	return names
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // strings only; the client may be gone
}

// secure sets the headers of a page that loads nothing from elsewhere.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

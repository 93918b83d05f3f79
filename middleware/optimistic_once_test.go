package middleware_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// The handler must not run again where its work may have left the process. The request is a 503
// then, and nothing of it is saved or sent.
func TestAHandlerThatMayNotRunAgain(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		for name, begin := range map[string]func(w http.ResponseWriter, req *http.Request) error{
			"Commit": func(_ http.ResponseWriter, req *http.Request) error {
				return session.FromContext(req.Context()).Commit(req.Context())
			},
			"Flush": func(w http.ResponseWriter, _ *http.Request) error { return http.NewResponseController(w).Flush() },
			"Hijack": func(w http.ResponseWriter, _ *http.Request) error {
				_, _, err := http.NewResponseController(w).Hijack()
				return err
			},
			"an answer larger than Options.Buffer": func(w http.ResponseWriter, _ *http.Request) error {
				_, err := w.Write(make([]byte, 1000))
				return err
			},
		} {
			var failed error
			p := newPair(t, r, middleware.Options{Buffer: 100}, func(p *pair, _ int32, w http.ResponseWriter, req *http.Request) {
				add(session.FromContext(req.Context()))
				p.another(t, "/add")
				w.Header().Set("X-Handler", "yes")
				failed = begin(w, req)
			})
			a := p.v.get(p.here.URL + "/page")
			a.want(t, 503, "The session is not available just now. Nothing was saved. Please try again.")
			if !errors.Is(failed, store.ErrConflict) || a.Header.Get("Retry-After") == "" || a.Header.Get("X-Handler") != "" {
				t.Errorf("%s: %v, %v", name, failed, a.Header)
			}
			if len(p.here.log.Lines("kind=conflict")) != 1 || len(p.here.log.Lines("cannot run again after "+name)) != 1 {
				t.Errorf("%s: the log is\n%s", name, p.here.log)
			}
			p.v.get(p.here.URL+"/get").want(t, 200, "2")
			p.wantRuns(t, 1)
			p.wantFree(t)
		}
	})
}

// Mode Optimistic is for requests that may be repeated. In another one nothing is run.
func TestOptimisticIsForSafeMethods(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	ran := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) { ran++ })
	s := newSite(t, r.Pool(t, 1), middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.Optimistic }}, mux)
	v := newVisitor(t)
	for method, want := range map[string]int{"GET": 200, "HEAD": 200, "OPTIONS": 200, "TRACE": 200, "POST": 500, "PUT": 500, "DELETE": 500, "PATCH": 500, "get": 500} {
		before := ran
		a := v.send(t.Context(), method, s.URL, nil)
		if a.StatusCode != want || (ran > before) != (want == 200) {
			t.Errorf("%s: %d, and the handler ran %d times", method, a.StatusCode, ran-before)
		}
	}
	if lines := s.log.Lines("mode Optimistic is for GET, HEAD, OPTIONS and TRACE"); len(lines) != 5 {
		t.Errorf("the log is\n%s", s.log)
	}
}

// A body can be read only once, and other Sessions around may have a session that the handler
// changes. There the handler runs once, with the lock.
func TestWhereAHandlerMustRunOnceItIsExclusive(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	p := newPair(t, r, middleware.Options{}, func(p *pair, _ int32, w http.ResponseWriter, req *http.Request) {
		_, held := r.Get(t, recordOfSite(t, p)+".lock")
		fmt.Fprint(w, held)
	})
	p.v.get(p.here.URL+"/page").want(t, 200, "false")
	p.v.send(t.Context(), http.MethodGet, p.here.URL+"/page", strings.NewReader("body")).want(t, 200, "true")
	p.wantRuns(t, 2)
}

// Other Sessions around or inside take part in no second run: what they have would be changed twice.
func TestOptimisticAmongOtherSessions(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		for name, c := range map[string]struct {
			outer, inner middleware.Mode
			status       int
			n            string // of both, afterwards
		}{
			"inside others, it is exclusive":     {middleware.Exclusive, middleware.Optimistic, 200, "2 2"},
			"others inside have saved something": {middleware.Optimistic, middleware.Exclusive, 503, "1 2"},
		} {
			var mode [2]middleware.Mode
			own := func(i int, name string) *middleware.Sessions {
				s, err := middleware.New(store.New(r.Pool(t, 4), store.Options{Prefix: name + ":"}), middleware.Options{
					Keys: [][]byte{testKey}, Cookie: http.Cookie{Name: name},
					Mode: func(*http.Request) middleware.Mode { return mode[i] },
				})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			outer, inner := own(0, "outer"), own(1, "inner")
			v, meanwhile, locked := newVisitor(t), func() {}, false
			mux := http.NewServeMux()
			mux.HandleFunc("/add", func(_ http.ResponseWriter, req *http.Request) {
				add(outer.FromContext(req.Context()))
				add(inner.FromContext(req.Context()))
				meanwhile()
				locked = slices.ContainsFunc(r.Keys(t), func(key string) bool {
					return strings.HasPrefix(key, "inner:") && strings.HasSuffix(key, ".lock")
				})
			})
			mux.HandleFunc("/get", func(w http.ResponseWriter, req *http.Request) {
				n, _ := session.Get[int](outer.FromContext(req.Context()), "n")
				m, _ := session.Get[int](inner.FromContext(req.Context()), "n")
				fmt.Fprint(w, n, m)
			})
			none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
			s := newSite(t, r.Pool(t, 1), none, outer.Handler(inner.Handler(mux)))
			v.get(s.URL+"/add").want(t, 200, "")
			mode = [2]middleware.Mode{c.outer, c.inner}
			meanwhile = sync.OnceFunc(func() { changeRecord(t, r, "outer:") })
			if c.outer != middleware.Optimistic {
				meanwhile = func() {}
			}
			if a := v.get(s.URL + "/add"); a.StatusCode != c.status {
				t.Errorf("%s: %d %q", name, a.StatusCode, a.body)
			}
			if !locked {
				t.Errorf("%s: the inner session was not locked", name)
			}
			mode = [2]middleware.Mode{}
			v.get(s.URL+"/get").want(t, 200, c.n)
			r.Do(t, "FLUSHALL")
		}
	})
}

// changeRecord saves the one session with a prefix as it is, as another request would.
func changeRecord(t *testing.T, r *redistest.Server, prefix string) {
	for _, key := range r.Keys(t) {
		id, ours := strings.CutPrefix(key, prefix+"{")
		if !ours || !strings.HasSuffix(id, "}") {
			continue
		}
		st := store.New(r.Pool(t, 1), store.Options{Prefix: prefix})
		hold, err := st.Take(t.Context(), strings.TrimSuffix(id, "}"), store.Terms{})
		if err != nil {
			t.Error(err)
			return
		}
		must(t, hold.Save(t.Context(), hold.Record.Encoded()))
	}
}

// A panic in the first run saves nothing and is no reason for a second one; one in the second run
// frees the session.
func TestAPanicInAnOptimisticHandler(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		for in := range int32(2) {
			p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, _ http.ResponseWriter, req *http.Request) {
				add(session.FromContext(req.Context()))
				if run == 1 {
					p.another(t, "/add")
				}
				if run == in+1 {
					panic(http.ErrAbortHandler)
				}
			})
			if a := p.v.post(p.here.URL + "/nothing"); a.err != nil {
				t.Error(a.err)
			}
			wire := dial(t, p.here.Server) // a client would repeat the GET
			wire.send("GET /page HTTP/1.1\r\nHost: x\r\nCookie: " + p.v.cookies(p.here)[0].String() + "\r\n\r\n")
			if a := wire.read(); a.err == nil {
				t.Errorf("run %d has panicked, and the answer is %d %q", in+1, a.StatusCode, a.body)
			}
			p.wantRuns(t, in+1)
			p.v.get(p.here.URL+"/get").want(t, 200, "2")
			p.wantFree(t)
		}
	})
}

// P3: where it is not known whether the first run was saved, there is no second one.
func TestNoSecondRunAfterASaveThatMayHaveBeenDone(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		p := newPair(t, r, middleware.Options{}, nil)
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{Mode: optimisticGets}, app())
		v := p.tab(t)
		v.get(s.URL+"/add").want(t, 200, "2") // Redis learns the script
		tries := 0
		proxy.Inject(func(cmd redistest.Command) redistest.Fault {
			if cmd.Name != "EVALSHA" {
				return redistest.Pass
			}
			switch tries++; tries {
			case 1:
				return redistest.DropReply
			case 2:
				p.another(t, "/add")
			}
			return redistest.Pass
		})
		v.get(s.URL+"/add").want(t, 503, "The session is not available just now. Please try again.")
		proxy.Inject(nil)
		p.v.get(p.here.URL+"/get").want(t, 200, "4") // 3 was saved, and then another came
	})
}

// The network makes a copy of a save that was refused, since another held the session, and that is
// done once the session is free. The request finds its own record then, and does not run again.
func TestACopyOfARefusedSaveIsKnown(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		p := newPair(t, r, middleware.Options{}, nil)
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{Mode: optimisticGets}, app())
		v := p.tab(t)
		v.get(s.URL+"/add").want(t, 200, "2")
		lock := recordOfSite(t, p) + ".lock"
		var save redistest.Command
		proxy.Inject(func(cmd redistest.Command) redistest.Fault {
			switch {
			case cmd.Name == "EVALSHA" && save.Name == "":
				save = cmd
				r.Do(t, "SET", lock, "another", "PX", 60_000)
			case cmd.Name == "SET" && cmd.Args[0] == lock && save.Name != "": // it takes the lock
				r.Do(t, "DEL", lock)
				args := make([]any, len(save.Args))
				for i, arg := range save.Args {
					args[i] = arg
				}
				r.Do(t, save.Name, args...)
			}
			return redistest.Pass
		})
		v.get(s.URL+"/add").want(t, 200, "3")
		proxy.Inject(nil)
		v.get(s.URL+"/get").want(t, 200, "3")
		p.wantFree(t)
	})
}

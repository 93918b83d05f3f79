package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/history"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// Increments, reads, logins and logouts of a few sessions, made at once through two
// processes, are linearizable, and all of them are answered.
//
// Reads are in mode ReadOnly, so this also shows that they never go back in time. Among the
// logins are double clicks, of which the first is dropped: the second is never refused.
//
// Increments and reads are linearizable, too, with each lock of package locker around sessions that have no
// lock. Such sessions know nothing of ended IDs, so there are no logins.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	var anew atomic.Int64 // of the visitors that have left
	t.Cleanup(func() {
		if anew.Load() == 0 && !t.Skipped() {
			t.Error("no session was begun in place of an ended one")
		}
	})
	for lock, visitors := range map[string]int{lockSpin: 2, lockTimestamp: 1, lockLease: 1, lockRedlock: 1} {
		args := shared(t, lock)
		var sites history.Sites
		for range 2 {
			sites.Add(demotest.Start(t, args...).URL)
		}
		for range visitors {
			t.Run(lock, func(t *testing.T) {
				t.Parallel()
				v := newVisitor(t, &sites)
				v.Logins = lock == lockSpin
				ctx, cancel := atLeast(t, time.Second, func() bool {
					sum := v.Summary()
					return sum.Writes > 0 && (!v.Logins || sum.Anew > 0 || anew.Load() > 0)
				})
				defer cancel()
				visit(ctx, t, v, 5)
				anew.Add(int64(v.Summary().Anew))
				if n := v.Summary().Silent; n > 0 {
					t.Errorf("%d requests were not answered", n)
				}
			})
		}
	}
}

// The same holds if most requests do not wait: they only read, or are optimistic. A request that takes the session
// only to read it may see a state that is not stored yet, but never responds with a state that is discarded. Without
// faults all requests are answered: no optimistic request costs a holder its lock. Package internal/faults tests what
// accidents do to waiting requests.
func TestOptimisticHistories(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]bool{"nothing happens": false, "bad networks, and locks are deleted": true} {
		for _, kind := range []struct {
			name    string
			clients int // more clients would cost the checker minutes
			logins  bool
			mode    middleware.Mode // of GET
		}{
			{"readers", 20, false, middleware.ReadOnly},
			{"optimists", 20, false, middleware.Optimistic},
			{"optimists that log in", 5, true, middleware.Optimistic},
		} {
			t.Run(kind.name+", "+name, func(t *testing.T) {
				t.Parallel()
				o := store.Options{Lease: time.Minute, Timeout: 20 * time.Second} // more than a busy machine needs
				if broken {
					o.Lease, o.Timeout = time.Second, 300*time.Millisecond // much less than the run lasts
				}
				r := redistest.Real(t)
				var sites history.Sites
				var asked, ran atomic.Int64
				for range 2 {
					p := redistest.NewProxy(t, r)
					sites.Add(serveCounter(t, p.URL, o, kind.mode, &asked, &ran))
					if broken {
						p.Inject(oneIn(200))
					}
				}
				v := newVisitor(t, &sites)
				v.Logins = kind.logins
				if kind.mode == middleware.ReadOnly {
					v.Reads = []string{"/count", "/count?exclusive", "/count?exclusive"}
				}
				ctx, cancel := atLeast(t, 1500*time.Millisecond, func() bool { return v.Summary().Writes > 0 })
				defer cancel()
				var accidents sync.WaitGroup
				if broken {
					accidents.Go(func() { deleteLocks(ctx, t, r) })
				}
				visit(ctx, t, v, kind.clients)
				accidents.Wait()
				if n := v.Summary().Silent; n > 0 && !broken {
					t.Errorf("%d requests were not answered", n)
				}
				if again := ran.Load() > asked.Load(); again != (kind.mode == middleware.Optimistic) && !broken {
					t.Errorf("%d requests, and %d runs of handlers", asked.Load(), ran.Load())
				}
			})
		}
	}
}

// atLeast returns a context that ends after a while, and not before enough has happened: a busy machine may take longer
// for that. It ends after a minute in any case.
func atLeast(t *testing.T, while time.Duration, enough func() bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	time.AfterFunc(while, func() {
		for !enough() && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	})
	return ctx, cancel
}

// serveCounter serves the demo's counter in this process. GET requests have the given mode: these are the
// reads, or most requests if the mode is Optimistic.
func serveCounter(t *testing.T, redisURL string, o store.Options, mode middleware.Mode, asked, ran *atomic.Int64) (url string) {
	st, err := store.Open(redisURL, o)
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := middleware.New(st, middleware.Options{
		Keys:    [][]byte{[]byte(strings.Repeat("key ", 8))},
		Cookie:  http.Cookie{Name: "session"},
		OnError: func(w http.ResponseWriter, _ *http.Request, err error) { w.WriteHeader(middleware.Status(err)) },
		Mode: func(r *http.Request) middleware.Mode {
			if r.Method == http.MethodGet && !r.URL.Query().Has("exclusive") {
				return mode
			}
			return middleware.Exclusive
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for pattern, handler := range map[string]http.HandlerFunc{
		"/reset": reset, "/incr": incr, "/count": count, "/login": login, "/logout": logout,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ran.Add(1)
			handler(w, r)
		})
	}
	locked := sessions.Handler(mux)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if mode == middleware.Optimistic {
			if r.Method = http.MethodGet; rand.IntN(5) == 0 {
				r.Method = http.MethodPost
			}
		}
		locked.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.Close()
		_ = st.Close() // all checks are done
	})
	return server.URL
}

// oneIn returns a function that injects a fault of any kind into one in n commands, at random.
func oneIn(n int) func(redistest.Command) redistest.Fault {
	faults := []redistest.Fault{redistest.DropReply, redistest.CutReply, redistest.DropCommand, redistest.Hang, redistest.HangCommand}
	return func(redistest.Command) redistest.Fault {
		if rand.IntN(n) == 0 {
			return faults[rand.IntN(len(faults))]
		}
		return redistest.Pass
	}
}

// deleteLocks deletes all locks now and then, as evictions may, until ctx ends.
func deleteLocks(ctx context.Context, t *testing.T, r *redistest.Server) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond) // at any moment
		for _, key := range r.Keys(t) {
			if strings.HasSuffix(key, ".lock") {
				r.Do(t, "DEL", key)
			}
		}
	}
}

func newVisitor(t *testing.T, sites *history.Sites) *history.Visitor {
	return &history.Visitor{HTTP: &http.Client{Transport: newTransport(t), Timeout: time.Minute}, Site: sites.Any}
}

// visit makes requests from several clients until ctx ends, and checks what they saw.
func visit(ctx context.Context, t *testing.T, v *history.Visitor, clients int) {
	t.Helper()
	seed := rand.Uint64()
	v.Run(ctx, clients, seed)
	said := fmt.Sprintf("seed %d: %+v", seed, v.Summary())
	if err := v.Check(); err != nil || v.Summary().Writes == 0 {
		t.Errorf("%s: %v", said, err)
	}
	t.Log(said)
}

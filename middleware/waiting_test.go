package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P5: A wait ends, with a response that says when to try again.
func TestAWaitEndsWith503(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		o := middleware.Options{LockWait: 100 * time.Millisecond}
		here, elsewhere := newSite(t, r.Pool(t, 4), o, app()), newSite(t, r.Pool(t, 4), o, app())
		v := newVisitor(t).everywhere()
		v.get(here.URL+"/add").want(t, 200, "1")
		free := v.hold(here.URL + "/hold")
		for _, s := range []*site{here, elsewhere} { // in the holder's process, and in another
			began := time.Now()
			a := v.get(s.URL + "/add")
			a.want(t, 503, "*")
			if waited := time.Since(began); a.Header.Get("Retry-After") == "" || waited < o.LockWait || waited > o.LockWait && !r.IsReal() {
				t.Errorf("after %v: %v", waited, a.Header)
			}
			if len(s.log.Lines("lock is held by ")) != 1 {
				t.Errorf("log:\n%s", s.log)
			}
		}
		free().want(t, 200, "")
		v.get(here.URL+"/get").want(t, 200, "1")
	})
}

// P5: Only MaxWaiters requests may wait, so many requests with one cookie cost others nothing. A client that goes
// away makes room at once. That holds even if it has sent a body, although net/http only notices after the body is
// read.
func TestTheQueueIsBoundedAndLeftAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			s, v := begun(t, r, middleware.Options{MaxWaiters: 1, LockWait: time.Minute}, app())
			free := v.hold(s.URL + "/hold")
			for range 2 { // the place is taken, and free again
				ctx, leave := context.WithCancel(t.Context())
				left := make(chan answer)
				go func() { left <- v.send(ctx, method, s.URL+"/add", strings.NewReader("a=1")) }()
				synctest.Wait()
				began := time.Now()
				v.send(t.Context(), method, s.URL+"/add", strings.NewReader("a=1")).want(t, 503, "*")
				leave()
				if a := <-left; !errors.Is(a.err, context.Canceled) || time.Since(began) > 0 {
					t.Errorf("%s: the one that waited: %d %v, after %v", method, a.StatusCode, a.err, time.Since(began))
				}
				synctest.Wait()
			}
			if len(s.log.Lines("too many callers wait")) != 2 {
				t.Errorf("log:\n%s", s.log)
			}
			free().want(t, 200, "")
			v.get(s.URL+"/get").want(t, 200, "1")
		}
	})
}

// P5: a tiny pool suffices: waiters hold no connection, and the holder can always
// release.
func TestAPoolOfTwoServesAHundred(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		for _, wait := range []bool{true, false} { // for a free connection
			pool := r.Pool(t, 2)
			pool.Wait = wait
			mux := app()
			mux.HandleFunc("/work", func(w http.ResponseWriter, req *http.Request) {
				<-time.After(time.Millisecond) // work, while the lock is held
				mux.ServeHTTP(w, as(req, "/add"))
			})
			s := newSite(t, pool, middleware.Options{LockWait: time.Minute}, mux)
			var crowd sync.WaitGroup
			var visitors []*visitor
			for range 5 { // five sessions, twenty requests each
				v := s.visitor(t)
				visitors = append(visitors, v)
				for range 20 {
					crowd.Go(func() { v.get(s.URL+"/work").want(t, 200, "*") })
				}
			}
			crowd.Wait()
			for _, v := range visitors {
				v.get(s.URL+"/get").want(t, 200, "21")
			}
		}
	})
}

// P5: in mode Lazy, too, a request waits for at most LockWait in all, however often
// its handler calls Start. When the time is used up each further Start is one try,
// which succeeds once the session is free.
func TestARequestWaitsOnceHoweverOftenItStarts(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		const lockWait = 5 * time.Second
		mux := app()
		var free func() answer
		mux.HandleFunc("/lazy", func(w http.ResponseWriter, req *http.Request) {
			began := time.Now()
			for range 5 {
				if _, err := session.Start(req.Context()); !errors.Is(err, store.ErrTimeout) {
					t.Errorf("the session is held, and Start says %v", err)
				}
			}
			if waited := time.Since(began); waited < lockWait || waited > lockWait+time.Second {
				t.Errorf("waited %v, want %v in all", waited, lockWait)
			}
			free()
			s, err := session.Start(req.Context())
			must(t, err)
			fmt.Fprint(w, add(s))
		})
		s, v := begun(t, r, middleware.Options{LockWait: lockWait, Mode: byPath(map[string]middleware.Mode{"/lazy": middleware.Lazy})}, mux)
		free = v.hold(s.URL + "/hold")
		v.get(s.URL+"/lazy").want(t, 200, "2")
	})
}

// P5: If a body that is read before the lock does not arrive whole, the handler does not run. The response says why, since
// the client may still be there.
func TestABodyThatDoesNotArriveWhole(t *testing.T) {
	for name, stops := range map[string]func(*wire) error{
		"too slow":    func(*wire) error { return nil }, // for the read deadline
		"half closed": func(w *wire) error { return w.Conn.(interface{ CloseWrite() error }).CloseWrite() },
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			seen := &witness{}
			s := around(t, r, middleware.Options{Observers: []middleware.Observer{seen}}, func(sessions func(http.Handler) http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					must(t, http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second)))
					sessions(app()).ServeHTTP(w, req)
				})
			})
			v := newVisitor(t)
			began := v.get(s.URL + "/add")
			began.want(t, 200, "1")
			w := dial(t, s.Server)
			w.send("POST /add HTTP/1.1\r\nHost: a\r\nCookie: sid=" + began.Cookies()[0].Value + "\r\nContent-Length: 10\r\n\r\nabc")
			must(t, stops(w))
			w.read().want(t, 400, "The request did not arrive whole. Nothing was saved. Please try again.")
			if all := requestsIn(seen.takeAll()); len(all) != 2 || all[1].Runs != 0 || all[1].Kind != "canceled" || middleware.Status(all[1].Err) != 400 {
				t.Errorf("the observer was told of %+v", all)
			}
			v.get(s.URL+"/get").want(t, 200, "1")
		})
	}
}

// P5: A waiting request keeps its body in memory, once, and little more. Until the body comes, the request keeps no
// room for it. The test is not parallel: it looks at the memory of the whole program.
func TestAWaitingRequestHoldsItsBodyAndLittleMore(t *testing.T) {
	const (
		waiting = 100
		buffer  = 64 << 10
		rest    = 24 << 10 // net/http's buffers, the request, its goroutine's objects
	)
	for name, test := range map[string]struct {
		sent, most int
	}{
		"whole bodies": {buffer, buffer + rest},
		"one byte":     {1, rest},
	} {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan struct{}, waiting)
			s := newSessions(t, redistest.Embedded(t), middleware.Options{LockWait: time.Minute}).Handler(app())
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				req.Body = &watchedBody{req.Body, test.sent, arrived}
				s.ServeHTTP(w, req)
			}))
			defer srv.Close()
			v := newVisitor(t)
			a := v.get(srv.URL + "/add")
			a.want(t, 200, "1")
			free := v.hold(srv.URL + "/hold")

			wires := make([]*wire, waiting)
			for i := range wires {
				wires[i] = dial(t, srv)
			}
			head := fmt.Sprintf("POST /add HTTP/1.1\r\nHost: a\r\nCookie: sid=%s\r\nContent-Length: %d\r\n\r\n", a.Cookies()[0].Value, buffer)
			content := string(make([]byte, test.sent))
			before := heap()
			for _, w := range wires {
				w.send(head)
				w.send(content)
			}
			for range wires {
				select {
				case <-arrived:
				case <-time.After(20 * time.Second):
					t.Fatal("bodies are not read while their requests wait")
				}
			}
			each := (heap() - before) / waiting
			t.Logf("%d bytes for each waiting request", each)
			if each < test.sent || each > test.most {
				t.Errorf("a waiting request holds %d bytes: want from %d to %d", each, test.sent, test.most)
			}
			for _, w := range wires {
				w.Close()
			}
			free().want(t, 200, "")
		})
	}
}

// A watchedBody reports when the last of left bytes was read.
type watchedBody struct {
	io.ReadCloser
	left    int
	arrived chan<- struct{}
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left == 0 {
		b.arrived <- struct{}{}
	}
	return n, err
}

// heap returns the bytes of all objects in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second one frees what sync.Pools hold
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

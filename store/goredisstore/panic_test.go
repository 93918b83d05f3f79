package goredisstore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/go-redis/v9"
)

// A hook misbehaves when a script is sent: once, or each time until it is removed. It does not touch the commands
// that go-redis sends on a new connection, for which no caller may be waiting.
type hook struct{ before, after atomic.Pointer[func()] }

func onlyOnce(do func()) *func() {
	var done atomic.Bool
	f := func() {
		if done.CompareAndSwap(false, true) {
			do()
		}
	}
	return &f
}

func call(f *func()) {
	if f != nil {
		(*f)()
	}
}

func (h *hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return next(ctx, network, address)
	}
}

func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h.around([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h.around(cmds, func() error { return next(ctx, cmds) })
	}
}

func (h *hook) around(cmds []redis.Cmder, send func() error) error {
	if !slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return strings.HasPrefix(c.Name(), "eval") }) {
		return send()
	}
	call(h.before.Load())
	err := send()
	call(h.after.Load())
	return err
}

// A shop is a server whose handlers count in the session.
type shop struct {
	*httptest.Server
	hook    hook
	visitor http.Client
	log     *bytes.Buffer     // the log; to be read after the last request
	during  map[string]func() // the action of a path before its end
}

func newShop(t *testing.T, s *redistest.Server, during func(*shop) map[string]func()) *shop {
	t.Helper()
	sh := &shop{log: new(bytes.Buffer)}
	c := at(s)
	c.AddHook(&sh.hook)
	t.Cleanup(func() { c.Close() })
	st, err := New(c, store.Options{Lease: time.Minute, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	sessions, err := middleware.New(st, middleware.Options{
		Keys: [][]byte{[]byte(strings.Repeat("key ", 8))}, Cookie: http.Cookie{Name: "s"}, LockWait: 30 * time.Second,
		Logger: slog.New(slog.NewTextHandler(sh.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	sh.during = during(sh)
	sh.Server = httptest.NewUnstartedServer(sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		n, _ := session.Get[int](s, "n")
		s.Set("n", n+1)
		fmt.Fprint(w, n+1)
		if do := sh.during[r.URL.Path]; do != nil {
			do()
		}
	})))
	sh.Config.ErrorLog = log.New(io.Discard, "", 0)
	sh.Start()
	t.Cleanup(sh.Close)
	sh.visitor.Jar, _ = cookiejar.New(nil)
	return sh
}

// post returns the status and the text of a response, or 0 if there is none.
func (s *shop) post(path string) (int, string) {
	a, err := s.visitor.Post(s.URL+path, "", nil)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return 0, err.Error()
	}
	return a.StatusCode, string(text)
}

func (s *shop) want(t *testing.T, path string, status int) (text string) {
	t.Helper()
	got, text := s.post(path)
	if got != status {
		t.Errorf("%s: %d %q, want %d", path, got, text, status)
	}
	return text
}

// checkLog closes the shop, and checks that the log explains the status of a request.
func (s *shop) checkLog(t *testing.T, status int) {
	t.Helper()
	s.Close()
	if status == 503 && !strings.Contains(s.log.String(), "a panic in github.com/a2139e8d/latchkey/store/goredisstore.TestAHookPanicsDuringACommit.func1:") {
		t.Errorf("the log does not say what has happened:\n%s", s.log)
	}
}

// P7: if a hook of the application panics during a commit, or ends the goroutine, that request fails, and so do
// the requests that share its commit. The process lives, and the session is free at once, although its lease is
// longer than any request waits.
func TestAHookPanicsDuringACommit(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	bug := func() { panic("a bug in a hook") }
	for name, tt := range map[string]struct {
		arm    func(h *hook)
		status int
		stored int
	}{
		"before it is sent":    {func(h *hook) { h.before.Store(onlyOnce(bug)) }, 503, 0},
		"after it is done":     {func(h *hook) { h.after.Store(onlyOnce(bug)) }, 503, 1},
		"Goexit before":        {func(h *hook) { h.before.Store(onlyOnce(runtime.Goexit)) }, 0, 0},
		"Goexit after":         {func(h *hook) { h.after.Store(onlyOnce(runtime.Goexit)) }, 0, 1},
		"each round trip does": {func(h *hook) { h.before.Store(&bug) }, 503, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sh := newShop(t, s, func(sh *shop) map[string]func() {
				return map[string]func(){"/bad": func() { tt.arm(&sh.hook) }}
			})
			sh.want(t, "/", 200)
			sh.want(t, "/", 200) // from now on Redis knows the script of a commit
			sh.want(t, "/bad", tt.status)
			sh.hook.before.Store(nil)
			sh.hook.after.Store(nil)
			if text := sh.want(t, "/", 200); text != fmt.Sprint(3+tt.stored) {
				t.Errorf("the next request has counted to %s", text)
			}
			sh.checkLog(t, tt.status)
		})
		t.Run(name+", beside others", func(t *testing.T) {
			t.Parallel()
			entered, leave := make(chan struct{}), make(chan struct{})
			sh := newShop(t, s, func(sh *shop) map[string]func() {
				return map[string]func(){"/wait": func() { close(entered); <-leave; tt.arm(&sh.hook) }}
			})
			sh.want(t, "/", 200)
			sh.want(t, "/", 200)
			first := make(chan int)
			go func() {
				status, _ := sh.post("/wait")
				first <- status
			}()
			<-entered
			var all sync.WaitGroup
			var answered atomic.Int64
			for range 8 {
				all.Go(func() {
					status, text := sh.post("/")
					if status == 200 {
						answered.Add(1)
					} else if status != 503 && status != tt.status {
						t.Errorf("the request beside it: %d %q", status, text)
					}
				})
			}
			close(leave)
			// Another request may have sent the commit of both, and ended with its goroutine.
			if status := <-first; status != tt.status && status != 503 {
				t.Errorf("the status is %d, want %d, or 503", status, tt.status)
			}
			all.Wait()
			sh.hook.before.Store(nil)
			sh.hook.after.Store(nil)
			n, _ := strconv.Atoi(sh.want(t, "/", 200))
			if least := 3 + tt.stored + int(answered.Load()); n < least || n > least+9 {
				t.Errorf("counted to %d, and %d requests were answered with 200", n, least)
			}
			sh.checkLog(t, tt.status)
		})
	}
}

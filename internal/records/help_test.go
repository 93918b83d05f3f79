package records

import (
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// The session that the tests are about, the ID that Renew gives it, and their
// keys. Each test has a Redis of its own.
const (
	theID     = "6f1c2a9be4d07358"
	theRecord = "latchkey:{" + theID + "}"
	theLock   = theRecord + ".lock"
	newID     = "0b7d94e6a1c35f28"
	newRecord = "latchkey:{" + newID + "}"
)

// theRevision is the revision of a record of the session, and theForm is the form of all its
// records.
var (
	theForm     = form{bond: lease.BondOf(theLock)}
	theRevision = string(theForm.bond[:]) + "EFGHIJKLMNOP"
)

// patient are options for tests that are not about time: on a busy machine no lease expires, and no
// command times out.
var patient = Options{Lease: time.Minute, Timeout: 20 * time.Second}

// inFakeTime runs f in parallel with other tests, in a bubble with a Redis in memory.
func inFakeTime(t *testing.T, f func(t *testing.T, s *redistest.Server)) {
	t.Helper()
	t.Parallel()
	redistest.InFakeTime(t, f)
}

// fakeTime is a subtest in fake time.
func fakeTime(f func(t *testing.T, s *redistest.Server)) func(*testing.T) {
	return func(t *testing.T) { inFakeTime(t, f) }
}

// process returns the store of another process, with its own pool.
func process(t *testing.T, s *redistest.Server) *Engine {
	t.Helper()
	return onPool(s.Pool(t, 8), patient)
}

// tapped returns the store of a process whose commands go through a proxy.
func tapped(t *testing.T, s *redistest.Server, o Options) (*Engine, *redistest.Proxy) {
	t.Helper()
	p := redistest.NewProxy(t, s)
	return onPool(p.Pool(t, 2), o), p
}

// knowing makes a store know Redis's clock, as after its first login. In a bubble, that clock is the bubble's.
func knowing(st *Engine) *Engine {
	now := time.Now()
	st.clock.learn(now.UnixMicro(), now)
	return st
}

// lapse lets time pass, for example for the work of a handler. In a bubble it is exact.
func lapse(d time.Duration) { time.Sleep(d) }

// create stores the session's first record.
func create(t *testing.T, st *Engine, data string) {
	t.Helper()
	must(t, st.Create(t.Context(), theID, []byte(data), Terms{}))
}

// take takes the session, waiting until it is free.
func take(t *testing.T, st *Engine) *Hold {
	t.Helper()
	return takeBy(t, st, Terms{LockWait: time.Minute})
}

// takeBy is take by these terms.
func takeBy(t *testing.T, st *Engine, terms Terms) *Hold {
	t.Helper()
	h, _, err := st.Take(t.Context(), theID, terms)
	must(t, err)
	return h
}

// takeID takes a session that is free.
func takeID(t *testing.T, st *Engine, id string) *Hold {
	t.Helper()
	h, _, err := st.Take(t.Context(), id, Terms{})
	must(t, err)
	return h
}

// save stores data and ends the hold.
func save(t *testing.T, h *Hold, data string) {
	t.Helper()
	must(t, h.Save(t.Context(), []byte(data)))
}

// wantData checks what is stored, as another process sees it.
func wantData(t *testing.T, s *redistest.Server, want string) {
	t.Helper()
	r, err := onPool(s.Pool(t, 1), patient).Load(t.Context(), theID, Terms{})
	if string(r.Data) != want || err != nil {
		t.Errorf("the record has %q, %v; want %q", r.Data, err, want)
	}
}

// wantFree checks that nobody has the session's lock.
func wantFree(t *testing.T, s *redistest.Server) {
	t.Helper()
	if holder, locked := s.Get(t, theLock); locked {
		t.Errorf("the session is locked by %q", holder)
	}
}

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// expiry returns when key expires, from now.
func expiry(t *testing.T, s *redistest.Server, key string) time.Duration {
	t.Helper()
	ms, err := redis.Int64(s.Do(t, "PTTL", key), nil)
	must(t, err)
	if ms < 0 {
		t.Errorf("%s does not expire, or does not exist: %d", key, ms)
	}
	return time.Duration(ms) * time.Millisecond
}

// wantExpiry checks that key lives for want, or up to half a minute less, since the machine may be busy.
func wantExpiry(t *testing.T, s *redistest.Server, key string, want time.Duration) {
	t.Helper()
	if got := expiry(t, s, key); got > want || got < want-30*time.Second {
		t.Errorf("%s expires in %v, want %v", key, got, want)
	}
}

// runs reports whether a command runs a script.
func runs(cmd redistest.Command, script *scripting.Script) bool {
	text := asSent(script)
	return cmd.Name == "EVAL" && cmd.Args[0] == text ||
		cmd.Name == "EVALSHA" && cmd.Args[0] == fmt.Sprintf("%x", sha1.Sum([]byte(text)))
}

// run returns a function that reports whether a command runs a script.
func run(script *scripting.Script) func(redistest.Command) bool {
	return func(cmd redistest.Command) bool { return runs(cmd, script) }
}

// The first try to take a session begins with SET and ends with MGET.
func takesLock(cmd redistest.Command) bool {
	return cmd.Name == "SET" && strings.HasSuffix(cmd.Args[0], ".lock")
}
func readsBoth(cmd redistest.Command) bool { return cmd.Name == "MGET" }

// sent caches the texts of scripts as they are sent to Redis, with their frames.
var sent sync.Map

func asSent(script *scripting.Script) string {
	if text, ok := sent.Load(script); ok {
		return text.(string)
	}
	panic("learn comes first")
}

// learn makes Redis load all scripts, as the first few requests do.
func learn(t *testing.T, s *redistest.Server) {
	t.Helper()
	for _, script := range []*scripting.Script{
		takeScript, loadScript, commitScript, optimisticScript, createScript, dropScript, loginScript, claimScript, endAllScript,
	} {
		if _, known := sent.Load(script); !known {
			p := redistest.NewProxy(t, s.Another(t))
			// This fails, for lack of arguments.
			_, _ = scripting.NewRunner(transport.NewRedigo(p.Pool(t, 1), time.Second), time.Second).Run(t.Context(), script, scripting.Keys{"a", "b", "c"})
			for _, cmd := range p.Commands() {
				if cmd.Name == "EVAL" {
					sent.Store(script, cmd.Args[0])
				}
			}
			_, known = sent.Load(script)
			if !known {
				t.Fatal("a script that Redis does not know was not sent")
			}
		}
		s.Do(t, "SCRIPT", "LOAD", asSent(script))
	}
}

// once injects a fault into the next run of a script. The function that it returns releases a command that the
// fault holds.
func once(t *testing.T, s *redistest.Server, p *redistest.Proxy, script *scripting.Script, fault redistest.Fault) (release func()) {
	t.Helper()
	learn(t, s) // otherwise the next run may be an EVALSHA that Redis does not know
	return onceFor(t, p, run(script), fault)
}

// onceFor is once for any kind of command.
func onceFor(t *testing.T, p *redistest.Proxy, is func(redistest.Command) bool, fault redistest.Fault) (release func()) {
	t.Helper()
	var done atomic.Bool
	p.Inject(func(cmd redistest.Command) redistest.Fault {
		if is(cmd) && done.CompareAndSwap(false, true) {
			return fault
		}
		return redistest.Pass
	})
	t.Cleanup(func() {
		if !done.Load() {
			t.Error("the command was never sent")
		}
	})
	return p.Release
}

// increment adds 1 to the number in the session.
func increment(t *testing.T, st *Engine) {
	t.Helper()
	h, _, err := st.Take(t.Context(), theID, Terms{LockWait: time.Minute})
	if err != nil {
		t.Error(err)
		return
	}
	must(t, h.Save(t.Context(), fmt.Append(nil, number(t, h.Record)+1)))
}

// lossOf returns a context that ends when a hold is lost.
func lossOf(t *testing.T, h *Hold) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	h.OnLost(cancel)
	return ctx
}

// toldLost waits until a holder is told that its session is lost.
func toldLost(t *testing.T, h *Hold) {
	t.Helper()
	ctx := lossOf(t, h)
	<-ctx.Done()
	wantError(t, "the cause", context.Cause(ctx), ErrLost)
}

// writes are the ends of a hold that write. uses are the ends after which the session goes on under its ID. ends
// are all of them.
var (
	writes = map[string]end{"Save": saves, "Destroy": destroys, "Renew": renews}
	uses   = map[string]end{"Save": saves, "Touch": touches, "Release": releases}
	ends   = map[string]end{"Save": saves, "Touch": touches, "Release": releases, "Destroy": destroys, "Renew": renews}
)

// An end is a way to end a hold. If it writes, the session's data are "written" then.
type end = func(ctx context.Context, h *Hold) error

func saves(ctx context.Context, h *Hold) error    { return h.Save(ctx, []byte("written")) }
func touches(ctx context.Context, h *Hold) error  { return h.Touch(ctx) }
func releases(ctx context.Context, h *Hold) error { h.Release(ctx); return nil }
func destroys(ctx context.Context, h *Hold) error { return h.Destroy(ctx) }
func renews(ctx context.Context, h *Hold) error   { return h.Renew(ctx, newID, []byte("written")) }

// wantNoRenewal waits until nothing is left of the new ID of a Renew that failed.
func wantNoRenewal(t *testing.T, s *redistest.Server) {
	t.Helper()
	redistest.Eventually(t, "no record of the new ID is left", func() bool { return !s.Exists(t, newRecord) })
}

// again sends commands to Redis once more, from another connection. Redis may refuse.
func again(t *testing.T, s *redistest.Server, commands ...redistest.Command) {
	t.Helper()
	c := s.Pool(t, 1).Get()
	defer c.Close()
	for _, cmd := range commands {
		_, err := c.Do(cmd.Name, anys(cmd.Args)...)
		if _, refused := errors.AsType[redis.Error](err); err != nil && !refused {
			t.Fatal(err)
		}
	}
}

func anys(args []string) (all []any) {
	for _, arg := range args {
		all = append(all, arg)
	}
	return all
}

// number reads a counter out of a record.
func number(t *testing.T, r Record) int {
	t.Helper()
	n, err := strconv.Atoi(string(r.Data))
	if err != nil {
		t.Error(err)
	}
	return n
}

// onPool returns an engine as package store makes one of a pool.
func onPool(pool *redis.Pool, o Options) *Engine {
	return New(owned{transport.NewRedigo(pool, cmp.Or(o.Timeout, lease.DefaultTimeout))}, o)
}

// An owned client is closed by its engine.
type owned struct{ *transport.Redigo }

func (c owned) CloseWithStore() error { return c.Close() }

// opened returns an engine on the Redis at a URL, for the time of the test.
func opened(t *testing.T, url string, o Options) *Engine {
	t.Helper()
	st := onPool(&redis.Pool{Dial: func() (redis.Conn, error) { return redis.DialURL(url) }}, o)
	t.Cleanup(func() { st.Close() })
	return st
}

// tokenOf returns the token by which the session of a hold is locked.
func tokenOf(h *Hold) string {
	h.tenure.mu.Lock()
	defer h.tenure.mu.Unlock()
	return h.tenure.term.Token
}

// validity returns for how long a hold may rely on the lock.
func validity(h *Hold) time.Duration {
	h.tenure.mu.Lock()
	defer h.tenure.mu.Unlock()
	return time.Until(h.tenure.term.End())
}

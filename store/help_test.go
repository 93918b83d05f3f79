package store

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// The session that the tests are about, the id that Renew gives it, and their
// keys. Each test has a Redis of its own.
const (
	theID     = "6f1c2a9be4d07358"
	theRecord = "latchkey:{" + theID + "}"
	theLock   = theRecord + ".lock"
	newID     = "0b7d94e6a1c35f28"
	newRecord = "latchkey:{" + newID + "}"
)

// patient are options for tests that are not about time: nothing runs out on a
// busy machine.
var patient = Options{Lease: time.Minute, Timeout: 20 * time.Second}

// A site is what the processes of one application share: the Redis with the
// records and the one with the locks. Where the locks lie beside the records, it
// is the same.
type site struct {
	*redistest.Server
	locks *redistest.Server
}

// open makes the store of another process, which reaches the two by these pools.
func (s *site) open(records, locks *redis.Pool, o Options) *Store {
	if s.locks != s.Server {
		o.Locker = locker.NewSpin(locks, locker.Options{Lease: o.Lease, Wait: time.Minute, Timeout: o.Timeout})
	}
	return New(records, o)
}

// commit returns the script that writes a record.
func (s *site) commit() *scripting.Script {
	if s.locks != s.Server {
		return replaceScript
	}
	return commitScript
}

// process returns the store of another process, with pools of its own.
func (s *site) process(t *testing.T) *Store {
	t.Helper()
	return s.open(s.Pool(t, 8), s.locks.Pool(t, 8), patient)
}

// eachFence runs f four times: with the locks beside the records and in a Redis
// of their own, each with the records on both servers.
func eachFence(t *testing.T, f func(t *testing.T, s *site)) {
	t.Helper()
	t.Run("beside", func(t *testing.T) { t.Parallel(); besideRecord(t, f) })
	t.Run("elsewhere", func(t *testing.T) { t.Parallel(); elsewhere(t, f) })
}

func besideRecord(t *testing.T, f func(t *testing.T, s *site)) {
	t.Helper()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) { f(t, &site{r, r}) })
}

func elsewhere(t *testing.T, f func(t *testing.T, s *site)) {
	t.Helper()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) { f(t, &site{r, r.Another(t)}) })
}

// eachFenceReal is eachFence for what only the real server can do.
func eachFenceReal(t *testing.T, f func(t *testing.T, s *site)) {
	t.Helper()
	t.Run("beside", func(t *testing.T) {
		t.Parallel()
		r := redistest.Real(t)
		f(t, &site{r, r})
	})
	t.Run("elsewhere", func(t *testing.T) {
		t.Parallel()
		r := redistest.Real(t); f(t, &site{r, redistest.Embedded(t)})
	})
}

// create stores the session's first record.
func create(t *testing.T, st *Store, data string) {
	t.Helper()
	if err := st.Create(t.Context(), theID, []byte(data), Terms{}); err != nil {
		t.Fatal(err)
	}
}

// take takes the session, which must be free or become so.
func take(t *testing.T, st *Store) *Hold {
	t.Helper()
	h, err := st.Take(t.Context(), theID, Terms{LockWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// save stores data and gives the session back.
func save(t *testing.T, h *Hold, data string) {
	t.Helper()
	if err := h.Save(t.Context(), []byte(data)); err != nil {
		t.Fatal(err)
	}
}

// wantData checks what is stored, as another process sees it.
func wantData(t *testing.T, s *site, want string) {
	t.Helper()
	r, err := New(s.Pool(t, 1), patient).Load(t.Context(), theID, Terms{})
	if string(r.Data) != want || err != nil {
		t.Errorf("the record has %q, %v; want %q", r.Data, err, want)
	}
}

// wantFree checks that nobody has the session's lock.
func wantFree(t *testing.T, s *site) {
	t.Helper()
	if holder, locked := s.locks.Get(t, theLock); locked {
		t.Errorf("the session is locked by %q", holder)
	}
}

// mustBe returns nil if err is want.
func mustBe(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("error %v, want %w", err, want)
	}
	return nil
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
	if err != nil {
		t.Fatal(err)
	}
	if ms < 0 {
		t.Errorf("%s does not expire, or does not exist: %d", key, ms)
	}
	return time.Duration(ms) * time.Millisecond
}

// wantExpiry checks that key lives for want, up to half a minute less: the machine
// may be busy.
func wantExpiry(t *testing.T, s *redistest.Server, key string, want time.Duration) {
	t.Helper()
	if got := expiry(t, s, key); got > want || got < want-30*time.Second {
		t.Errorf("%s expires in %v, want %v", key, got, want)
	}
}

// eventually waits for something that takes a moment.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// runs tells whether a command runs a script.
func runs(cmd redistest.Command, script *scripting.Script) bool {
	text := asSent(script)
	return cmd.Name == "EVAL" && cmd.Args[0] == text ||
		cmd.Name == "EVALSHA" && cmd.Args[0] == fmt.Sprintf("%x", sha1.Sum([]byte(text)))
}

// A kind is what a test looks for among the commands on the wire: its name, and which they are.
type kind struct {
	name string
	is   func(redistest.Command) bool
}

// run is the kind of the commands that run a script.
func run(script *scripting.Script) kind {
	return kind{firstLine(asSent(script)), func(cmd redistest.Command) bool { return runs(cmd, script) }}
}

// The first try to take a session is these two commands, and what is between them.
var (
	takesLock = kind{"SET of the lock", func(cmd redistest.Command) bool {
		return cmd.Name == "SET" && strings.HasSuffix(cmd.Args[0], ".lock")
	}}
	readsBoth = kind{"MGET", func(cmd redistest.Command) bool { return cmd.Name == "MGET" }}
)

// sent is what scripts look like on their way to Redis, where they have a frame.
var sent sync.Map

func asSent(script *scripting.Script) string {
	if text, ok := sent.Load(script); ok {
		return text.(string)
	}
	panic("learn comes first")
}

// learn makes Redis know all scripts, as it does after the first few requests.
func learn(t *testing.T, s *redistest.Server) {
	t.Helper()
	for _, script := range []*scripting.Script{
		takeScript, loadScript, commitScript, optimisticScript, createScript, replaceScript, dropScript, loginScript,
	} {
		if _, known := sent.Load(script); !known {
			p := redistest.NewProxy(t, s.Another(t))
			// It fails, for lack of arguments.
			_, _ = scripting.NewRunner(transport.NewRedigo(p.Pool(t, 1), time.Second), time.Second).Run(t.Context(), script, scripting.Keys{"a", "b", "c"})
			for _, cmd := range p.Commands() {
				if cmd.Name == "EVAL" {
					sent.Store(script, cmd.Args[0])
				}
			}
		}
		s.Do(t, "SCRIPT", "LOAD", asSent(script))
	}
}

// once injects a fault into the next run of a script. What it returns lets a held
// command go.
func once(t *testing.T, s *redistest.Server, p *redistest.Proxy, script *scripting.Script, fault redistest.Fault) (release func()) {
	t.Helper()
	learn(t, s) // else the next run may be an EVALSHA that only finds out
	return onceFor(t, p, run(script), fault)
}

// onceFor is once for any kind of command.
func onceFor(t *testing.T, p *redistest.Proxy, k kind, fault redistest.Fault) (release func()) {
	t.Helper()
	var done atomic.Bool
	p.Inject(func(cmd redistest.Command) redistest.Fault {
		if k.is(cmd) && done.CompareAndSwap(false, true) {
			return fault
		}
		return redistest.Pass
	})
	t.Cleanup(func() {
		if !done.Load() {
			t.Errorf("it was never sent: %s", k.name)
		}
	})
	return p.Release
}

// firstLine returns the comment that a script begins with, perhaps inside its frame.
func firstLine(s string) string {
	return strings.SplitN(strings.TrimPrefix(s, "local function script()\n"), "\n", 2)[0]
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

package lease

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// patient options do not time out, even on a busy machine.
var patient = Options{Lease: time.Minute, Wait: time.Minute, Timeout: 20 * s}

// slow options never poll in time: a caller that is not notified has to wait.
var slow = Options{Lease: time.Minute, Wait: time.Hour, Timeout: 20 * s, Backoff: Backoff{Min: time.Hour, Max: time.Hour}}

// onServers runs f in fake time, and on a real Redis.
func onServers(t *testing.T, f func(t *testing.T, server *redistest.Server)) {
	t.Parallel()
	redistest.Each(t, f)
}

// inMemory runs f in fake time.
func inMemory(t *testing.T, f func(t *testing.T, server *redistest.Server)) {
	t.Parallel()
	redistest.InFakeTime(t, f)
}

// A peer is the spin lock's side of one process. Two peers share nothing but Redis.
type peer struct {
	group *Locks
	spin  *spin
	wire  *wire
}

// newProcess returns a process. In fake time, nothing of it may be left after the test.
func newProcess(t *testing.T, server *redistest.Server) *peer {
	p := newProcessOver(t, server.Pool(t, 8), patient.Timeout)
	if !server.IsReal() {
		t.Cleanup(func() { wantRest(t, server, p) })
	}
	return p
}

func newProcessOver(t *testing.T, pool *redis.Pool, timeout time.Duration) *peer {
	client := transport.NewRedigo(pool, timeout)
	t.Cleanup(func() { client.Close() })
	line := &wire{Client: client}
	spin := &spin{Spin: Spin{Runner: scripting.NewRunner(client, timeout)}}
	return &peer{
		group: &Locks{Lines[*Lease]{Notifiers: NewNotifiers(line, spin.Quit)}},
		spin:  spin,
		wire:  line,
	}
}

// withTwo runs f in fake time, with two processes.
func withTwo(t *testing.T, f func(t *testing.T, server *redistest.Server, holder, p *peer)) {
	t.Helper()
	inMemory(t, func(t *testing.T, server *redistest.Server) {
		f(t, server, newProcess(t, server), newProcess(t, server))
	})
}

func newProcesses(t *testing.T, server *redistest.Server, n int) (peers []*peer) {
	for range n {
		peers = append(peers, newProcess(t, server))
	}
	return peers
}

// takeTurns starts callers in each process. Each caller takes the lock so many times, and calls hold while it has
// the lock. Only the lock guards what hold changes.
func takeTurns(t *testing.T, processes []*peer, callers, times int, hold func(process int)) {
	t.Helper()
	var all sync.WaitGroup
	for i, p := range processes {
		for range callers {
			all.Go(func() {
				for range times {
					l, err := p.lock(t, patient)
					if err != nil {
						t.Error(err)
						return
					}
					hold(i)
					mustUnlock(t, l)
				}
			})
		}
	}
	all.Wait()
}

func (p *peer) lock(t *testing.T, o Options) (*Lease, error) {
	return p.group.Lock(t.Context(), "k", p.spin, o)
}

func (p *peer) mustLock(t *testing.T, o Options) *Lease {
	t.Helper()
	return lock(t, p.group, p.spin, o)
}

// joins waits for the lock, which another holder has. It returns when its place is in the queue.
func (p *peer) joins(t *testing.T, ctx context.Context, server *redistest.Server, o Options) <-chan result {
	t.Helper()
	before := len(queued(t, server))
	got := wait(ctx, p.group, p.spin, o)
	if server.IsReal() {
		eventually(t, "a place in the queue", func() bool { return len(queued(t, server)) > before })
		return got
	}
	redistest.Elapse(20 * time.Millisecond) // the place may need one more try after the subscription was made
	if n := len(queued(t, server)); n != before+1 {
		t.Fatalf("%d places in the queue, want %d", n, before+1)
	}
	return got
}

// mustWin waits for a lease and releases it.
func mustWin(t *testing.T, got <-chan result) result {
	t.Helper()
	r := <-got
	if r.err != nil {
		t.Fatal(r.err)
	}
	mustUnlock(t, r.lease)
	return r
}

// wantRest checks that nothing is left a moment later.
func wantRest(t *testing.T, server *redistest.Server, processes ...*peer) {
	t.Helper()
	if !server.IsReal() {
		redistest.Elapse(time.Hour)
	}
	for _, p := range processes {
		wantIdle(t, p.group)
		eventually(t, "the end of the subscriptions", func() bool { return p.wire.listening() == 0 })
	}
	if keys := server.Keys(t); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

// eventually waits until ok returns true, which takes a moment.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * s); !ok(); pause(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// queued returns the places in the queue of k.
func queued(t *testing.T, server *redistest.Server) []string {
	t.Helper()
	text, _ := server.Get(t, queueKey("k"))
	return strings.Fields(text)
}

func wantNoQueue(t *testing.T, server *redistest.Server) {
	t.Helper()
	if places := queued(t, server); len(places) > 0 {
		t.Errorf("left in the queue: %q", places)
	}
}

// A spin is the algorithm, with hooks.
type spin struct {
	hooks
	Spin
}

func (f *spin) Take(ctx context.Context, key, token, place string, span time.Duration) (Attempt, error) {
	var found atomic.Pointer[Attempt]
	err := f.call(ctx, f.take, "Take", key, token, span, func(ctx context.Context) error {
		a, err := f.Spin.Take(ctx, key, token, place, span)
		found.Store(&a)
		return err
	})
	if a := found.Load(); a != nil && err == nil {
		return *a, nil
	}
	return Attempt{}, err
}

func (f *spin) Extend(ctx context.Context, key, token string, d time.Duration) error {
	return f.call(ctx, f.extend, "Extend", key, token, d, func(ctx context.Context) error {
		return f.Spin.Extend(ctx, key, token, d)
	})
}

func (f *spin) Release(ctx context.Context, key, token string, after time.Duration) error {
	return f.call(ctx, f.release, "Release", key, token, after, func(ctx context.Context) error {
		return f.Spin.Release(ctx, key, token, after)
	})
}

func (f *spin) Quit(ctx context.Context, key, place string) error {
	return f.call(ctx, f.quit, "Quit", key, place, 0, func(ctx context.Context) error {
		return f.Spin.Quit(ctx, key, place)
	})
}

func (f *spin) Pass(ctx context.Context, key, from, to string, span time.Duration) (bool, error) {
	var others atomic.Bool
	err := f.call(ctx, f.pass, "Pass", key, to, span, func(ctx context.Context) error {
		wait, err := f.Spin.Pass(ctx, key, from, to, span)
		others.Store(wait)
		return err
	})
	return err == nil && others.Load(), err
}

// A wire carries the messages to one process. It can fail in several ways.
type wire struct {
	transport.Client
	cluster bool

	mu     sync.Mutex // guards all below
	ends   []*lineEnd
	asked  int           // how often a subscription was asked for
	takes  time.Duration // how long subscribing takes
	denied bool
	lossy  bool // messages are received, and dropped
}

type lineEnd struct {
	transport.Subscription
	wire  *wire
	moved atomic.Bool
}

// set changes how the wire fails from now on.
func (l *wire) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// Subscribe is useless on a cluster, where PUBLISH does not count all listeners.
func (l *wire) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	if l.cluster {
		return nil, errRefused
	}
	return l.subscribe(ctx, channel)
}

func (l *wire) SubscribeShard(ctx context.Context, channel string) (transport.Subscription, error) {
	return l.subscribe(ctx, channel)
}

func (l *wire) subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	l.mu.Lock()
	l.asked++
	takes := l.takes
	l.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	l.mu.Lock()
	denied := l.denied
	l.mu.Unlock()
	if denied {
		return nil, errRefused
	}
	sub, err := l.Client.Subscribe(ctx, channel)
	if err != nil {
		return nil, err
	}
	end := &lineEnd{Subscription: sub, wire: l}
	l.set(func() { l.ends = append(l.ends, end) })
	return end, nil
}

func (l *wire) IsCluster() bool { return l.cluster }

func (e *lineEnd) Receive() (string, error) {
	for {
		m, err := e.Subscription.Receive()
		e.wire.mu.Lock()
		lossy := e.wire.lossy
		e.wire.mu.Unlock()
		switch {
		case e.moved.Load():
			return "", transport.ErrMoved
		case err != nil || !lossy:
			return m, err
		}
	}
}

func (e *lineEnd) Close() error {
	e.wire.set(func() {
		e.wire.ends = slices.DeleteFunc(e.wire.ends, func(other *lineEnd) bool { return other == e })
	})
	return e.Subscription.Close()
}

// cut breaks all subscriptions: as a slot that moves does, or as a broken connection does.
func (l *wire) cut(moved bool) {
	l.mu.Lock()
	ends := slices.Clone(l.ends)
	l.mu.Unlock()
	for _, end := range ends {
		end.moved.Store(moved)
		_ = end.Close()
	}
}

func (l *wire) listening() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ends)
}

// want checks how many subscriptions there are, and how often one was asked for.
func (l *wire) want(t *testing.T, open, asked int) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ends) != open || l.asked != asked {
		t.Errorf("%d subscriptions, asked for %d times; want %d and %d", len(l.ends), l.asked, open, asked)
	}
}

// addUser creates a Redis user with the least rights that a lock needs, and these rights. n counts the users.
func addUser(t *testing.T, server *redistest.Server, n *int, rights ...any) (name string) {
	t.Helper()
	*n++
	name = fmt.Sprint("user", *n)
	server.Do(t, "ACL", append([]any{"SETUSER", name, "on", ">pw", "resetkeys", "resetchannels", "-@all",
		"+ping", "+get", "+set", "+del", "+pexpire", "+eval", "+evalsha"}, rights...)...)
	return name
}

// poolAs returns a pool of a Redis user.
func poolAs(t *testing.T, server *redistest.Server, user string) *redis.Pool {
	pool := &redis.Pool{MaxIdle: 1, Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", server.Addr, redis.DialUsername(user), redis.DialPassword("pw"))
	}}
	t.Cleanup(func() { pool.Close() })
	return pool
}

package store_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// What the tests share that see a store from outside, as its callers do.

// The session that the tests are about, and its keys. Each test has a Redis of its
// own.
const (
	theID     = "6f1c2a9be4d07358"
	theRecord = store.DefaultPrefix + "{" + theID + "}"
	theLock   = theRecord + ".lock"
	newID     = "0b7d94e6a1c35f28"
)

// patient are options for tests that are not about time: nothing runs out on a
// busy machine.
var patient = store.Options{Lease: time.Minute, Timeout: 20 * time.Second}

// open makes the store of another process, with a pool of its own.
func open(t *testing.T, r *redistest.Server, o store.Options) *store.Store {
	t.Helper()
	return store.New(r.Pool(t, 8), o)
}

func create(t *testing.T, st *store.Store, data string, terms store.Terms) {
	t.Helper()
	if err := st.Create(t.Context(), theID, []byte(data), terms); err != nil {
		t.Fatal(err)
	}
}

// take takes the session, which must be free or become so.
func take(t *testing.T, st *store.Store, terms store.Terms) *store.Hold {
	t.Helper()
	terms.LockWait = time.Minute
	h, err := st.Take(t.Context(), theID, terms)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func save(t *testing.T, h *store.Hold, data string) {
	t.Helper()
	if err := h.Save(t.Context(), []byte(data)); err != nil {
		t.Fatal(err)
	}
}

// write is a whole request that is answered.
func write(t *testing.T, st *store.Store, data string) {
	t.Helper()
	save(t, take(t, st, store.Terms{}), data)
}

// wantData checks what is stored.
func wantData(t *testing.T, st *store.Store, want string) {
	t.Helper()
	record, err := st.Load(t.Context(), theID, store.Terms{})
	if got := string(record.Data); got != want || err != nil {
		t.Errorf("the record has %q, %v; want %q", got, err, want)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// toldLost waits until a holder is told that its lock is lost.
func toldLost(t *testing.T, h *store.Hold) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	h.OnLost(cancel)
	select {
	case <-ctx.Done():
		wantError(t, "the cause", context.Cause(ctx), store.ErrLost)
	case <-time.After(20 * time.Second):
		t.Fatal("the holder was never told that its lock is lost")
	}
}

// A taking is a Take that is under way.
type taking struct {
	hold *store.Hold
	err  error
	done chan struct{}
}

// begin begins to take the session.
func begin(t *testing.T, st *store.Store, terms store.Terms) *taking {
	w := &taking{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.hold, w.err = st.Take(t.Context(), theID, terms)
	}()
	return w
}

// wait returns what was taken, which must have this in it.
func (w *taking) wait(t *testing.T, data string) *store.Hold {
	t.Helper()
	<-w.done
	if w.err != nil {
		t.Fatalf("one that waited: %v", w.err)
	}
	if got := string(w.hold.Record.Data); got != data {
		t.Errorf("one that waited found %q, want %q", got, data)
	}
	return w.hold
}

// inLine waits until n requests wait for the session in one process: one more is
// turned away then.
func inLine(t *testing.T, st *store.Store, n int) {
	t.Helper()
	eventually(t, "all are in line", func() bool {
		_, err := st.Take(t.Context(), theID, store.Terms{LockWait: locker.NoWait, MaxWaiters: n})
		return errors.Is(err, store.ErrTooManyWaiters)
	})
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

// number reads a counter out of a record.
func number(t *testing.T, r store.Record) int {
	t.Helper()
	n, err := strconv.Atoi(string(r.Data))
	if err != nil {
		t.Error(err)
	}
	return n
}

// left returns for how long a key lives.
func left(t *testing.T, r *redistest.Server, key string) time.Duration {
	t.Helper()
	ms, err := redis.Int64(r.Do(t, "PTTL", key), nil)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}

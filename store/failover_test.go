package store

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// After a failover, open connections stay with the old master, which is a
// replica now. It must be no session's judge: what it does not know may well
// exist. As soon as the address leads to a master again, all is well by itself.
func TestDemotedServerIsUnavailable(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st := opened(t, s.URL, patient)
	create(t, st, "before")
	held := take(t, st)

	s.Do(t, "REPLICAOF", "127.0.0.1", "1") // nobody is there: it keeps its data
	wantError(t, "Save", held.Save(t.Context(), []byte("lost")), ErrUnavailable)
	for what, try := range map[string]func(id string) error{
		"Take":   func(id string) error { _, err := st.Take(t.Context(), id, Terms{}); return err },
		"Load":   func(id string) error { _, err := st.Load(t.Context(), id, Terms{}); return err },
		"Create": func(id string) error { return st.Create(t.Context(), id, []byte("x"), Terms{}) },
	} {
		wantError(t, what+" of a known id", try(theID), ErrUnavailable)
		wantError(t, what+" of an unknown id", try(newID), ErrUnavailable)
	}

	s.Do(t, "REPLICAOF", "NO", "ONE")
	s.Do(t, "DEL", theLock) // which could not be released; its lease would end, too
	save(t, take(t, st), "after")
	if r, err := st.Load(t.Context(), theID, Terms{}); string(r.Data) != "after" || err != nil {
		t.Errorf("Load: %q, %v", r.Data, err)
	}
}

// A connection that met a replica is given up, whatever pool made it.
func TestConnectionToDemotedServerIsDropped(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st, dialled := counted(t, s, patient)
	create(t, st, "data")

	s.Do(t, "REPLICAOF", "127.0.0.1", "1")
	_, err := st.Load(t.Context(), theID, Terms{})
	wantError(t, "Load", err, ErrUnavailable)
	s.Do(t, "REPLICAOF", "NO", "ONE")
	for range 2 { // the new one is kept
		if _, err := st.Load(t.Context(), theID, Terms{}); err != nil {
			t.Error(err)
		}
	}
	if n := dialled.Load(); n != 2 {
		t.Errorf("%d connections were made, want a new one, once", n)
	}
}

// The address of a silent server may lead to another by now. So it costs one timeout, and
// the next exchange has a new connection.
func TestConnectionToSilentServerIsDropped(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st, dialled := counted(t, s, Options{Timeout: 300 * time.Millisecond})
	create(t, st, "data")

	s.Pause(t)
	_, err := st.Load(t.Context(), theID, Terms{})
	wantError(t, "Load", err, ErrUnavailable)
	s.Resume(t)
	if _, err := st.Load(t.Context(), theID, Terms{}); err != nil {
		t.Error(err)
	}
	if n := dialled.Load(); n != 3 {
		t.Errorf("%d connections were made, want one to find out whether Redis answers there, and a new one", n)
	}
}

// counted returns a store, and how many connections it has made.
func counted(t *testing.T, s *redistest.Server, o Options) (*Store, *atomic.Int32) {
	t.Helper()
	pool, dialled := s.Pool(t, 4), new(atomic.Int32)
	dial := pool.Dial
	pool.Dial = func() (redis.Conn, error) {
		dialled.Add(1)
		return dial()
	}
	st := New(pool, o)
	t.Cleanup(func() { st.Close() })
	return st, dialled
}

// Also where to connect takes exchanges of its own, a silent server keeps nobody for
// longer than the time-out and a quarter.
func TestSilentServerWithPassword(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	s.Do(t, "ACL", "SETUSER", "ann", "on", ">pass", "~*", "&*", "+@all")
	const timeout = time.Second
	st := opened(t, strings.Replace(s.URL, "redis://", "redis://ann:pass@", 1), Options{Timeout: timeout})
	create(t, st, "data")
	s.Pause(t)
	defer s.Resume(t)
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			if i >= 4 {
				time.Sleep(20 * time.Millisecond) // until the first are under way
			}
			begun := time.Now()
			_, err := st.Load(t.Context(), theID, Terms{})
			wantError(t, "Load", err, ErrUnavailable)
			if took := time.Since(begun); took > timeout*5/4+timeout/4 {
				t.Errorf("it took %v", took)
			}
		})
	}
	all.Wait()
}

// A request that has little time says nothing about the server, nor about the connection.
func TestShortDeadlineIsNoSilence(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st, dialled := counted(t, s, patient)
	create(t, st, "data")
	s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := st.Load(ctx, theID, Terms{})
	wantError(t, "Load", err, ErrUnavailable)
	s.Resume(t)
	if _, err := st.Load(t.Context(), theID, Terms{}); err != nil {
		t.Error(err)
	}
	if n := dialled.Load(); n != 1 {
		t.Errorf("%d connections were made, want the first to be kept", n)
	}
}

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

// After a failover, open connections stay with the old master, which is a replica now. It must be
// no session's judge: what it does not know may well exist. As soon as the address leads to a
// master again, all is well by itself: the connection that met a replica is given up, once.
func TestDemotedServerIsUnavailable(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st, dialled := counted(t, s, patient)
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
	before := dialled.Load()
	wantData(t, s, "after")
	save(t, take(t, st), "later") // the new one is kept
	if n := dialled.Load(); before < 2 || n != before {
		t.Errorf("%d connections were made by the time that all was well, and %d afterwards", before, n-before)
	}
}

// The address of a silent server may lead to another by now. So it costs one timeout, and
// the next exchange has a new connection.
func TestConnectionToSilentServerIsDropped(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, dialled := counted(t, s, patient)
		create(t, st, "data")
		s.Pause(t)
		_, err := st.Load(t.Context(), theID, Terms{})
		wantError(t, "Load", err, ErrUnavailable)
		s.Resume(t)
		load(t, st)
		if n := dialled.Load(); n != 3 {
			t.Errorf("%d connections were made, want one to find out whether Redis answers there, and a new one", n)
		}
	})
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

// Also where to connect takes exchanges of its own, a silent server keeps nobody for ever, and those
// that come one after another find that out together.
func TestSilentServerWithPassword(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	s.Do(t, "ACL", "SETUSER", "ann", "on", ">pass", "~*", "&*", "+@all")
	st := opened(t, strings.Replace(s.URL, "redis://", "redis://ann:pass@", 1), Options{Timeout: time.Second})
	create(t, st, "data")
	s.Pause(t)
	defer s.Resume(t)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			_, err := st.Load(t.Context(), theID, Terms{})
			wantError(t, "Load", err, ErrUnavailable)
		})
	}
	all.Wait()
}

// A request that has little time says nothing about the server, nor about the connection.
func TestShortDeadlineIsNoSilence(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, dialled := counted(t, s, patient)
		create(t, st, "data")
		s.Pause(t)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := st.Load(ctx, theID, Terms{})
		wantError(t, "Load", err, ErrUnavailable)
		s.Resume(t)
		load(t, st)
		if n := dialled.Load(); n != 1 {
			t.Errorf("%d connections were made, want the first to be kept", n)
		}
	})
}

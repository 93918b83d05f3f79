package store

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/testdata/redistest"
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
	fill(t, st.pool, 4)

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

// A connection that met a replica is given up, and with it all that are older:
// they lead to the same server.
func TestConnectionsToDemotedServerAreDropped(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st := opened(t, s.URL, patient)
	create(t, st, "data")
	fill(t, st.pool, 4)

	s.Do(t, "REPLICAOF", "127.0.0.1", "1")
	_, err := st.Load(t.Context(), theID, Terms{})
	wantError(t, "Load", err, ErrUnavailable)
	s.Do(t, "REPLICAOF", "NO", "ONE")
	if _, err := st.Load(t.Context(), theID, Terms{}); err != nil {
		t.Error(err)
	}
	if n := st.pool.ActiveCount(); n != 1 {
		t.Errorf("%d connections are open, want the new one only", n)
	}

	// A new one is kept.
	if _, err := st.Load(t.Context(), theID, Terms{}); err != nil {
		t.Error(err)
	}
	if stats := st.pool.Stats(); stats.ActiveCount != 1 || stats.IdleCount != 1 {
		t.Errorf("the pool has %+v, want one connection, idle", stats)
	}
}

// A server that is silent may be there no more, while its address leads to another
// already. It costs one time-out, not one for each connection that is idle.
func TestConnectionsToSilentServerAreDropped(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st := opened(t, s.URL, Options{Timeout: 300 * time.Millisecond})
	create(t, st, "data")
	fill(t, st.pool, 4)

	s.Pause(t)
	_, err := st.Load(t.Context(), theID, Terms{})
	wantError(t, "Load", err, ErrUnavailable)
	s.Resume(t)
	if n := st.pool.IdleCount(); n != 3 {
		t.Errorf("%d connections are idle, want those that were not used", n)
	}
	if _, err := st.Load(t.Context(), theID, Terms{}); err != nil {
		t.Error(err)
	}
	if n := st.pool.ActiveCount(); n != 1 {
		t.Errorf("%d connections are open, want the new one only", n)
	}
}

// fill leaves n idle connections in the pool.
func fill(t *testing.T, pool *redis.Pool, n int) {
	t.Helper()
	for range n {
		c := pool.Get()
		defer c.Close() // all together, when n are open
		if _, err := c.Do("PING"); err != nil {
			t.Fatal(err)
		}
	}
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
	fill(t, st.pool, 8)
	s.Pause(t)
	defer s.Resume(t)
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			if i >= 4 {
				time.Sleep(20 * time.Millisecond) // until all lanes are taken
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
	st := opened(t, s.URL, patient)
	create(t, st, "data")
	fill(t, st.pool, 4)
	s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := st.Load(ctx, theID, Terms{})
	wantError(t, "Load", err, ErrUnavailable)
	s.Resume(t)
	if _, err := st.Load(t.Context(), theID, Terms{}); err != nil {
		t.Error(err)
	}
	eventually(t, "all connections are kept", func() bool { return st.pool.IdleCount() == 4 })
}

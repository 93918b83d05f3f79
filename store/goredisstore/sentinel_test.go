package goredisstore

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/go-redis/v9"
)

// A FailoverClient goes to the master that Sentinel names. After a failover it is another one, and
// the sessions are there.
func TestSentinel(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Real(t, "--repl-diskless-sync", "no"), redistest.Real(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica.Do(t, "REPLICAOF", host, port)
	sentinel := redistest.Sentinel(t, master, 1)
	_, _ = redistest.AskSentinel(sentinel, "SENTINEL", "DEBUG", "INFO-PERIOD", 500) // looks for replicas more often

	c := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: redistest.MasterName, SentinelAddrs: []string{sentinel}, ContextTimeoutEnabled: true,
	})
	defer c.Close()
	st, err := New(c, store.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := st.Create(t.Context(), "theID", []byte("1"), store.Terms{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica has it", func() error { return missing(!replica.Exists(t, "latchkey:{theID}")) })
	eventually(t, "a failover begins", func() error {
		_, err := redistest.AskSentinel(sentinel, "SENTINEL", "FAILOVER", redistest.MasterName)
		return err // it may not know the replica yet
	})
	eventually(t, "the replica is the master", func() error { return missing(!replica.IsMaster(t)) })
	eventually(t, "the session is served", func() error {
		h, err := st.Take(t.Context(), "theID", store.Terms{})
		if err != nil {
			return err
		}
		if err := h.Save(t.Context(), []byte("2")); err != nil {
			return err
		}
		// What the old master was given before it knew that it was one no longer is lost.
		r, err := st.Load(t.Context(), "theID", store.Terms{})
		if err == nil && string(r.Data) != "2" {
			err = fmt.Errorf("loaded %q", r.Data)
		}
		return err
	})
	if got, _ := replica.Get(t, "latchkey:{theID}"); got == "" {
		t.Error("it is not at the new master")
	}
}

func missing(yes bool) error {
	if yes {
		return errors.New("not yet")
	}
	return nil
}

func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	err := try()
	for end := time.Now().Add(30 * time.Second); err != nil; err = try() {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

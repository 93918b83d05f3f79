package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
)

// A master that is killed, or hangs, is replaced by its replica. Its sessions are served again as soon as the
// cluster has done that. The keys of other masters are not affected.
func masterIsReplaced(t *testing.T, open Open) {
	s := &site{t, redistest.NewCluster(t, 3, 1, "--cluster-node-timeout", "2000"), open, nil}
	client := open(t, at(s.Nodes...), 3*time.Second) // enough for the healthy third master on a busy machine
	other := s.keyOf(s.third())
	for _, ending := range []struct {
		master *redistest.Server
		by     func(*redistest.Server, testing.TB)
	}{
		{s.first(), (*redistest.Server).Stop},
		{s.second(), (*redistest.Server).Pause},
	} {
		key := s.keyOf(ending.master)
		for _, key := range []string{key, other} {
			redistest.Await(t, "it is stored", func() error {
				replies, err := client.Do(t.Context(), key, transport.Command{"SET", key, "v"}, transport.Command{"WAIT", 1, 10_000})
				if err == nil && text(replies) != "[OK 1]" { // the cluster was not ready for a moment
					err = fmt.Errorf("the reply is %v", replies)
				}
				return err
			})
		}
		replica := s.ReplicaOf(t, ending.master)
		ending.by(ending.master, t)
		redistest.Await(t, "the replica serves", func() error {
			if _, err := client.Do(t.Context(), other, transport.Command{"INCR", other + "n"}); err != nil {
				t.Errorf("another master: %v", err)
			}
			replies, err := client.Do(t.Context(), key, transport.Command{"GET", key})
			if err != nil && !errors.Is(err, transport.ErrUnavailable) {
				t.Error(err)
			}
			if err == nil && text(replies) != "[v]" {
				err = fmt.Errorf("the reply is %v", replies)
			}
			return err
		})
		if !replica.IsMaster(t) {
			t.Error("the replica is not the master")
		}
	}
}

// With Sentinel a client follows the master by itself. A dead sentinel does not matter. While a replica
// takes over, a session is unavailable, but never reported as absent.
func sentinel(t *testing.T, open Open) {
	master := redistest.Real(t, "--repl-diskless-sync", "no")
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Real(t, "--replicaof", host+" "+port)
	address := redistest.Sentinel(t, master, 1)
	_, _ = redistest.AskSentinel(address, "SENTINEL", "DEBUG", "INFO-PERIOD", 500) // looks for replicas more often
	w := Way{Addresses: []string{"127.0.0.1:1", address}, MasterSet: redistest.MasterName}
	st := newStore(t, open, w, 2*time.Second)
	redistest.Await(t, "the master is found", func() error { return st.Ping(t.Context()) })
	Streams(t, st, newStore(t, open, w, patience))
	if err := records.Of(st).Create(t.Context(), "id", []byte("old"), records.Terms{}); err != nil {
		t.Fatal(err)
	}
	redistest.Await(t, "the replica has it", func() error {
		if !replica.Exists(t, "latchkey:{id}") {
			return errors.New("not yet")
		}
		return nil
	})
	redistest.Await(t, "a failover begins", func() error {
		_, err := redistest.AskSentinel(address, "SENTINEL", "FAILOVER", redistest.MasterName)
		return err // the sentinel may not know the replica yet
	})
	redistest.Await(t, "the replica takes over, and the session is there", func() error {
		err := save(t.Context(), st, "id", "new")
		if errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		if err == nil && !replica.IsMaster(t) {
			err = errors.New("the replica is no master yet")
		}
		if err == nil { // writes that the old master accepted before it knew of the failover are lost
			err = stored(t.Context(), st, "id", "new")
		}
		return err
	})
	if data, _ := replica.Get(t, "latchkey:{id}"); data == "" {
		t.Error("the session is not at the new master")
	}
}

// LeavesDemoted checks that a client leaves a server which is no longer a master, although its
// connections stay open. The address leads to the new master by then, as that of a service does. The
// client must dial it again, for requests that write and for requests that only read. At most mayFail
// requests may fail.
func LeavesDemoted(t *testing.T, open Open, mayFail int) {
	const id = "AAAAAAAAAAAAAAAAAAAAAA"
	for name, request := range map[string]func(context.Context, *store.Store) error{
		"a write": func(ctx context.Context, st *store.Store) error { return save(ctx, st, id, "1") },
		"a read": func(ctx context.Context, st *store.Store) error {
			_, err := records.Of(st).Load(ctx, id, records.Terms{TTL: 1 << 40, Lifetime: 1 << 50})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, promoted := redistest.Real(t), redistest.Real(t)
			var address atomic.Pointer[string]
			w := at(old)
			w.Dial = func(ctx context.Context, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", *address.Load())
			}
			var st *store.Store
			for _, server := range []*redistest.Server{promoted, old} {
				address.Store(&server.Addr)
				st = newStore(t, open, w, patience)
				if err := records.Of(st).Create(t.Context(), id, []byte("0"), records.Terms{}); err != nil {
					t.Fatal(err)
				}
			}
			host, port, _ := net.SplitHostPort(promoted.Addr)
			address.Store(&promoted.Addr)
			old.Do(t, "REPLICAOF", host, port)
			for succeeded, failed := 0, 0; succeeded < 3; {
				if err := request(t.Context(), st); err == nil {
					succeeded++
				} else if failed++; failed > mayFail {
					t.Fatal(err)
				}
			}
		})
	}
}

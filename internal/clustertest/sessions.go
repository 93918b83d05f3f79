package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/storetest"
	"github.com/a2139e8d/latchkey/store"
)

// save stores data in an existing session, under its lock.
func save(ctx context.Context, st *store.Store, id, data string) error {
	h, _, err := records.Of(st).Take(ctx, id, records.Terms{LockWait: time.Minute})
	if err != nil {
		return err
	}
	return h.Save(ctx, []byte(data))
}

// stored returns an error if a session does not hold data.
func stored(ctx context.Context, st *store.Store, id, data string) error {
	r, err := records.Of(st).Load(ctx, id, records.Terms{})
	if err == nil && string(r.Data) != data {
		err = fmt.Errorf("%s has %q, want %q", id, r.Data, data)
	}
	return err
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Two processes that know different nodes change sessions of all slots at the same time, and renew them into
// other slots. No change is lost.
func sessionsOfAllSlots(s *site) {
	processes := []*store.Store{s.store(at(s.first())), s.store(at(s.second(), s.third()))}
	const sessions, changes = 12, 10
	var all sync.WaitGroup
	for i := range sessions {
		id := fmt.Sprint("all-", i)
		s.must(records.Of(processes[0]).Create(s.Context(), id, []byte("x"), records.Terms{}))
		for _, st := range processes {
			all.Go(func() {
				for range changes {
					h, _, err := records.Of(st).Take(s.Context(), id, records.Terms{LockWait: time.Minute})
					if err == nil {
						err = h.Save(s.Context(), append(h.Record.Data, 'x'))
					}
					if err != nil {
						s.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	for i := range sessions {
		id, next := fmt.Sprint("all-", i), fmt.Sprint("next-", i)
		h, _, err := records.Of(processes[0]).Take(s.Context(), id, records.Terms{})
		s.must(err)
		s.must(h.Renew(s.Context(), next, h.Record.Data))
		s.must(stored(s.Context(), processes[1], next, strings.Repeat("x", 1+2*changes)))
		if _, err := records.Of(processes[1]).Load(s.Context(), id, records.Terms{}); !errors.Is(err, store.ErrGone) {
			s.Errorf("Load of the old ID: %v", err)
		}
	}
	for _, node := range s.Nodes[:3] {
		if len(node.Keys(s.T)) == 0 {
			s.Errorf("%s has no sessions", node.Addr)
		}
	}
}

// Without contention, an exclusive request takes two round trips, as on one server: that many writes to the
// network. The client asks nothing of a node that does not have the session.
func twoRoundTrips(s *site) {
	var writes atomic.Int64
	w := at(s.Nodes...)
	w.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		return counting{conn, &writes}, err
	}
	st := s.store(w)
	ids := []string{s.idOf(s.first()), s.idOf(s.second()), s.idOf(s.third())}
	for _, id := range ids {
		s.must(records.Of(st).Create(s.Context(), id, []byte("old"), records.Terms{}))
	}
	// Now and then a client may ask a node for something else, and at first Redis gets the scripts.
	redistest.Await(s, "two writes for each request", func() error {
		before := writes.Load()
		for _, id := range ids {
			s.must(save(s.Context(), st, id, "data"))
		}
		if n := writes.Load() - before; n != int64(2*len(ids)) {
			return fmt.Errorf("%d writes for %d requests", n, len(ids))
		}
		return nil
	})
}

type counting struct {
	net.Conn
	writes *atomic.Int64
}

func (c counting) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// Processes take turns.
func turns(s *site) {
	storetest.Turns(s.T, func(testing.TB) *store.Store { return s.store(at(s.Nodes...)) })
}

// leastRights checks that a user with the rights that the client's page names may also follow slots. While a slot
// is being moved, Redis still executes commands that only read.
func leastRights(s *site, rights []any) {
	LeastRights(s.T, s.open, s.Nodes, rights, func(st *store.Store, live func(id string)) {
		live(s.idOf(s.second()))
		moved, moving := s.idOf(s.first()), s.idOf(s.third())
		s.Move(s.T, s.Slot(s.T, "{"+moved+"}"), s.second())
		live(moved)
		m := s.BeginMove(s.T, s.Slot(s.T, "{"+moving+"}"), s.second())
		if _, err := records.Of(st).Load(s.Context(), moving, records.Terms{}); !errors.Is(err, store.ErrNotFound) {
			s.Error(err)
		}
		s.FinishMove(s.T, m)
	})
}

// LeastRights checks that a user with these rights, as ACL SETUSER expects them, may do everything that f
// does with its store. live makes a session live there, including one that has a waiter.
func LeastRights(t *testing.T, open Open, nodes []*redistest.Server, rights []any, f func(st *store.Store, live func(id string))) {
	for _, node := range nodes {
		node.Do(t, "ACL", append([]any{"SETUSER", "app", "on", ">secret"}, rights...)...)
		node.Do(t, "ACL", "LOG", "RESET")
	}
	w := at(nodes[0])
	w.User, w.Password = "app", "secret"
	a, b := newStore(t, open, w, patience), newStore(t, open, w, patience)
	f(a, func(id string) {
		if err := records.Of(a).Create(t.Context(), id, []byte("1"), records.Terms{}); err != nil {
			t.Fatal(err)
		}
		h, _, err := records.Of(b).Take(t.Context(), id, records.Terms{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- save(t.Context(), a, id, strings.Repeat("x", 100<<10)) }()
		redistest.Eventually(t, "it listens", func() bool { return anyListens(t, nodes) })
		h.Release(t.Context())
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	a.Close()
	b.Close()
	redistest.Eventually(t, "nobody listens any more", func() bool { return !anyListens(t, nodes) })
	for _, node := range nodes {
		for _, refused := range node.Do(t, "ACL", "LOG").([]any) {
			// Clients also work without these two: asking whether Redis is a cluster, and setting their own
			// names.
			if what := text(refused); !strings.Contains(what, "cluster|s") && !strings.Contains(what, "client|") {
				t.Errorf("refused: %s", what)
			}
		}
	}
}

func anyListens(t *testing.T, nodes []*redistest.Server) bool {
	return slices.ContainsFunc(nodes, func(node *redistest.Server) bool {
		return text(node.Do(t, "PUBSUB", "SHARDCHANNELS"))+text(node.Do(t, "PUBSUB", "CHANNELS")) != "[][]"
	})
}

// An address that leads nowhere, or to a silent server, does not matter if another one works.
func deadAddresses(s *site) {
	silent := redistest.Real(s.T)
	silent.Pause(s.T)
	for i, dead := range []string{"127.0.0.1:1", silent.Addr} {
		w := at(s.Nodes...)
		w.Addresses = append([]string{dead}, w.Addresses...)
		st := newStore(s.T, s.open, w, 3*time.Second)
		redistest.Await(s, "it works", func() error {
			err := records.Of(st).Create(s.Context(), fmt.Sprint("dead-", i), []byte("data"), records.Terms{})
			if err != nil && strings.Contains(err.Error(), "exists") {
				return nil
			}
			return err
		})
	}
}

// One node has another password, or is stopped. The sessions of the other nodes are not affected. Its own
// sessions give errors that say why.
func oneNodeFails(s *site) {
	for _, node := range s.Nodes {
		node.Do(s.T, "ACL", "SETUSER", "other", "on", "resetpass", ">1", "~*", "&*", "+@all")
	}
	s.first().Do(s.T, "ACL", "SETUSER", "other", "resetpass", ">0")
	w := at(s.second())
	w.User, w.Password = "other", "1"
	st := newStore(s.T, s.open, w, time.Second)
	works := func(node *redistest.Server) func() error {
		id := s.idOf(node)
		return func() error {
			err := save(s.Context(), st, id, "data")
			if errors.Is(err, store.ErrNotFound) {
				err = records.Of(st).Create(s.Context(), id, []byte("data"), records.Terms{})
			}
			return err
		}
	}
	first, second, third := works(s.first()), works(s.second()), works(s.third())
	redistest.Await(s, "the second works", second)
	redistest.Await(s, "the third works", third)
	redistest.Await(s, "the first says that the password is wrong", func() error { // at first the node may be too slow for that
		err := first()
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "WRONGPASS") {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
	s.third().Pause(s.T)
	defer s.third().Resume(s.T)
	for range 3 {
		if err := third(); !errors.Is(err, store.ErrUnavailable) {
			s.Errorf("a session on the stopped node: %v", err)
		}
	}
	redistest.Await(s, "another node works", second)
}

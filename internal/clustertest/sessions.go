package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/storetest"
	"github.com/a2139e8d/latchkey/store"
)

// save stores data in a session that is there, under its lock.
func save(ctx context.Context, st *store.Store, id, data string) error {
	h, err := st.Take(ctx, id, store.Terms{LockWait: time.Minute})
	if err != nil {
		return err
	}
	return h.Save(ctx, []byte(data))
}

// stored returns what is wrong if a session does not hold data.
func stored(ctx context.Context, st *store.Store, id, data string) error {
	r, err := st.Load(ctx, id, store.Terms{})
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

// Two processes that know different nodes change sessions of all slots at the same time, and renew
// them into other slots. No change is lost.
func sessionsOfAllSlots(s *site) {
	a, b := s.store(at(s.first())), s.store(at(s.second(), s.third()))
	const changes = 10
	change := func(st *store.Store, id string) {
		for range changes {
			h, err := st.Take(s.Context(), id, store.Terms{LockWait: time.Minute})
			if err == nil {
				err = h.Save(s.Context(), append(h.Record.Data, 'x'))
			}
			if err != nil {
				s.Error(err)
			}
		}
	}
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			id, next := fmt.Sprint("all-", i), fmt.Sprint("next-", i)
			if err := a.Create(s.Context(), id, []byte("x"), store.Terms{}); err != nil {
				s.Error(err)
				return
			}
			var both sync.WaitGroup
			both.Go(func() { change(a, id) })
			both.Go(func() { change(b, id) })
			both.Wait()
			h, err := a.Take(s.Context(), id, store.Terms{})
			if err == nil {
				err = h.Renew(s.Context(), next, h.Record.Data)
			}
			if err == nil {
				err = stored(s.Context(), b, next, strings.Repeat("x", 1+2*changes))
			}
			if err != nil {
				s.Error(err)
			}
			if _, err := b.Load(s.Context(), id, store.Terms{}); !errors.Is(err, store.ErrGone) {
				s.Errorf("the old id: %v", err)
			}
		})
	}
	all.Wait()
	for _, node := range s.Nodes[:3] {
		if len(node.Keys(s.T)) == 0 {
			s.Errorf("%s has no sessions", node.Addr)
		}
	}
}

// An exclusive request of a session that nobody else wants is two round trips, as on one server: as
// many writes to the network, and nothing is asked of a node that does not have the session.
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
		s.must(st.Create(s.Context(), id, []byte("old"), store.Terms{}))
	}
	// A client may ask a node something else now and then, and at first Redis learns the scripts.
	eventually(s, "two writes for each request", func() error {
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

// A user with the rights that the client's page names may do all that a store does: also wait, and
// go after slots.
func leastRights(s *site, rights []any) {
	for _, node := range s.Nodes {
		node.Do(s.T, "ACL", append([]any{"SETUSER", "app", "on", ">secret"}, rights...)...)
		node.Do(s.T, "ACL", "LOG", "RESET")
	}
	w := at(s.first())
	w.User, w.Password = "app", "secret"
	a, b := s.store(w), s.store(w)
	live := func(id string) {
		s.must(a.Create(s.Context(), id, []byte("1"), store.Terms{}))
		h, err := b.Take(s.Context(), id, store.Terms{})
		s.must(err)
		done := make(chan error)
		go func() { done <- save(s.Context(), a, id, strings.Repeat("x", 100<<10)) }()
		heard := fmt.Sprintf("{%s}", id)
		eventually(s, "it listens", func() error {
			if text(s.living(id).Do(s.T, "PUBSUB", "SHARDCHANNELS", "*"+heard+"*")) == "[]" {
				return errors.New("nobody does")
			}
			return nil
		})
		h.Release(s.Context())
		s.must(<-done)
	}
	live(s.idOf(s.second()))
	moved, moving := s.idOf(s.first()), s.idOf(s.third())
	s.Move(s.T, s.Slot(s.T, "{"+moved+"}"), s.second())
	live(moved)
	// Of a slot that is being moved, what is read alone is answered.
	m := s.BeginMove(s.T, s.Slot(s.T, "{"+moving+"}"), s.second())
	if _, err := a.Load(s.Context(), moving, store.Terms{}); !errors.Is(err, store.ErrNotFound) {
		s.Error(err)
	}
	s.FinishMove(s.T, m)
	for _, node := range s.Nodes {
		for _, refused := range node.Do(s.T, "ACL", "LOG").([]any) {
			// Clients do without these: whether it is a cluster, what else it is, and their own names.
			if what := text(refused); !strings.Contains(what, "cluster|s") && !strings.Contains(what, "client|") &&
				!strings.Contains(what, "object command") {
				s.Errorf("refused: %s", what)
			}
		}
	}
}

// living returns the node that has a session.
func (s *site) living(id string) *redistest.Server { return s.Owner(s.T, s.Slot(s.T, "{"+id+"}")) }

// An address that leads nowhere, or to a server that is silent, does not matter if another one works.
func deadAddresses(s *site) {
	silent := redistest.Real(s.T)
	silent.Pause(s.T)
	for i, dead := range []string{"127.0.0.1:1", silent.Addr} {
		w := at(s.Nodes...)
		w.Addresses = append([]string{dead}, w.Addresses...)
		st := newStore(s.T, s.open, w, 3*time.Second)
		eventually(s, "it works", func() error {
			err := st.Create(s.Context(), fmt.Sprint("dead-", i), []byte("data"), store.Terms{})
			if err != nil && strings.Contains(err.Error(), "exists") {
				return nil
			}
			return err
		})
	}
}

// One node has another password, or is stopped: the sessions of the others are not concerned, and
// its own are errors that say why.
func oneNodeFails(s *site) {
	for _, node := range s.Nodes {
		node.Do(s.T, "ACL", "SETUSER", "other", "on", "resetpass", ">1", "~*", "&*", "+@all")
	}
	s.first().Do(s.T, "ACL", "SETUSER", "other", "resetpass", ">0")
	w := at(s.second())
	w.User, w.Password = "other", "1"
	st := newStore(s.T, s.open, w, time.Second)
	ids := []string{s.idOf(s.first()), s.idOf(s.second()), s.idOf(s.third())}
	well := func(id string) func() error {
		return func() error {
			err := save(s.Context(), st, id, "data")
			if errors.Is(err, store.ErrNotFound) {
				err = st.Create(s.Context(), id, []byte("data"), store.Terms{})
			}
			return err
		}
	}
	eventually(s, "the second works", well(ids[1]))
	eventually(s, "the third works", well(ids[2]))
	var err error
	eventually(s, "the first says that the password is wrong", func() error { // it may be too slow for that
		if err = well(ids[0])(); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
	if !errors.Is(err, store.ErrUnavailable) {
		s.Error(err)
	}
	s.third().Pause(s.T)
	defer s.third().Resume(s.T)
	for range 3 {
		if err := well(ids[2])(); !errors.Is(err, store.ErrUnavailable) {
			s.Errorf("a node that is stopped: %v", err)
		}
	}
	eventually(s, "another node works", well(ids[1]))
}

package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// A holder that is killed, or cut off from Redis, blocks its session only until its lease ends. When it is back,
// it learns that its lock is lost, and cannot write.
func holderCutOff(s *site) {
	o := patient
	o.Lease = 2 * time.Second
	a, p := s.tapped(o)
	s.create(a, "first")
	stale := s.take(a)
	ctx, cancel := context.WithCancelCause(s.Context())
	defer cancel(nil)
	stale.OnLost(cancel)

	p.Inject(func(redistest.Command) redistest.Fault { return redistest.DropCommand }) // it sends nothing more
	s.save(s.take(s.process(patient)), "rightful")                                     // waits for the end of the lease
	<-ctx.Done()
	s.wantError("the holder's context", context.Cause(ctx), store.ErrLost)

	p.Inject(nil)
	s.wantError("Save", stale.Save(s.Context(), []byte("stale")), store.ErrLost)
	s.wantData("rightful")
	s.wantFree()
}

// A take without a reply leaves no lock. A commit without a reply returns ErrUnavailable, although it was done,
// and leaves no lock either.
func withoutReply(s *site) {
	a, p := s.tapped(hasty)
	b := s.process(patient)
	s.create(b, "before")
	s.save(s.take(b), "before") // from now on Redis has the scripts
	next(p, redistest.Hang)
	_, _, err := a.Take(s.Context(), theID, records.Terms{})
	s.wantError("Take", err, store.ErrUnavailable)
	s.wantFree()

	h := s.take(a)
	next(p, redistest.Hang)
	s.wantError("Save", h.Save(s.Context(), []byte("after")), store.ErrUnavailable)
	s.wantData("after")
	s.wantFree()
}

// While Redis is down, every operation is unavailable, and no session counts as absent. When Redis is back
// without its data, the sessions are not found and not adopted. Everything works again by itself.
func redisRestarts(s *site) {
	st := s.process(hasty)
	s.create(st, "before")
	h := s.take(st)
	s.redis.Stop(s)
	s.wantError("Ping", st.Ping(s.Context()), store.ErrUnavailable)
	_, _, err := st.Take(s.Context(), newID, records.Terms{})
	s.wantError("Take", err, store.ErrUnavailable)
	_, err = st.Load(s.Context(), theID, records.Terms{})
	s.wantError("Load", err, store.ErrUnavailable)
	s.wantError("Create", st.Create(s.Context(), newID, []byte("1"), records.Terms{}), store.ErrUnavailable)
	s.redis.Restart(s)
	s.eventually("Redis answers", func() bool { // a node of a cluster answers Ping before that
		_, err = st.Load(s.Context(), theID, records.Terms{})
		return !errors.Is(err, store.ErrUnavailable)
	})
	s.wantError("Load", err, store.ErrNotFound)
	s.wantError("Save", h.Save(s.Context(), []byte("after")), store.ErrLost)
	if keys := s.redis.Keys(s); len(keys) != 0 {
		s.Errorf("there are keys %q", keys)
	}
	s.create(st, "new")
	s.save(s.take(st), "newer")
	s.wantData("newer")
}

// If Redis hangs, every operation returns ErrUnavailable within the Timeout. When Redis continues, it may execute
// the commands that it was sent meanwhile. Then everything works.
func redisIsSilent(s *site) {
	st := s.process(hasty)
	s.create(st, "before")
	s.save(s.take(st), "before")
	h := s.take(st)
	s.redis.Pause(s)
	var all sync.WaitGroup
	for what, try := range map[string]func() error{
		"Save":   func() error { return h.Save(s.Context(), []byte("perhaps")) },
		"Load":   func() error { _, err := st.Load(s.Context(), theID, records.Terms{}); return err },
		"Take":   func() error { _, _, err := st.Take(s.Context(), newID, records.Terms{}); return err },
		"Create": func() error { return st.Create(s.Context(), "third", []byte("x"), records.Terms{}) },
		"Ping":   func() error { return st.Ping(s.Context()) },
	} {
		all.Go(func() { s.wantError(what, try(), store.ErrUnavailable) }) // or it waits for ever
	}
	all.Wait()
	s.redis.Resume(s)
	s.wantFree()
	s.eventually("Redis answers", func() bool { return st.Ping(s.Context()) == nil })
	s.save(s.take(st), "after")
	s.wantData("after")
}

// A full Redis refuses to store. The record stays as it was, and the session is free at once. A session can still
// be taken and ended.
func redisIsFull(s *site) {
	st := s.process(patient)
	s.create(st, "before")
	s.redis.Do(s, "CONFIG", "SET", "maxmemory", "1")
	for what, write := range map[string]func(h *records.Hold) error{
		"Save":  func(h *records.Hold) error { return h.Save(s.Context(), []byte("after")) },
		"Renew": func(h *records.Hold) error { return h.Renew(s.Context(), newID, []byte("after")) },
	} {
		s.wantError(what, write(s.take(st)), store.ErrUnavailable)
		s.wantFree()
		s.wantData("before")
	}
	s.redis.Do(s, "CONFIG", "SET", "maxmemory", "0")
	s.save(s.take(st), "after")
	s.wantData("after")

	s.redis.Do(s, "CONFIG", "SET", "maxmemory", "1")
	s.wantError("Destroy", s.take(st).Destroy(s.Context()), nil)
	_, err := st.Load(s.Context(), theID, records.Terms{})
	s.wantError("Load", err, store.ErrGone)
}

// The client still belongs to its owner. After Close the store is unavailable, but another store on the same
// client works.
func closeLeavesTheClient(s *site) {
	client := s.open(s, s.redis.Addr, patient.Timeout)
	a, b := records.New(client, patient), records.New(client, patient)
	s.create(a, "0")
	if err := a.Close(); err != nil {
		s.Error(err)
	}
	_, _, err := a.Take(s.Context(), theID, records.Terms{})
	s.wantError("Take", err, store.ErrUnavailable)
	s.save(s.take(b), "1")
	s.wantData("1")
	if err := b.Close(); err != nil {
		s.Error(err)
	}
}

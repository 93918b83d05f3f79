package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// A holder that has lost its lock, while another has written and holds the session now, changes
// nothing and learns it.
func staleHolder(s *site) {
	a, b := s.process(patient), s.process(patient)
	s.create(a, "first")
	for name, end := range ends {
		stale := s.take(a)
		s.redis.Do(s, "DEL", lock) // a failover, say
		s.save(s.take(b), "rightful")
		h := s.take(b)
		text, _ := s.redis.Get(s, record)
		token, _ := s.redis.Get(s, lock)
		s.wantError(name, end(s.Context(), stale), store.ErrLost)
		if got, _ := s.redis.Get(s, record); got != text {
			s.Errorf("%s: the record was %s and is %s", name, text, got)
		}
		if got, _ := s.redis.Get(s, lock); got != token {
			s.Errorf("%s: the lock was %s and is %s", name, token, got)
		}
		s.eventually("no record of the new id is left", func() bool { return !s.redis.Exists(s, moved) })
		s.save(h, "rightful again")
		s.wantData("rightful again")
	}
}

// A process that is cut off from Redis for longer than its lease learns that its lock is lost,
// and cannot write when it is back.
func holderCutOff(s *site) {
	o := patient
	o.Lease = 300 * time.Millisecond
	a, p := s.tapped(o)
	s.create(a, "first")
	stale := s.take(a)
	ctx, cancel := context.WithCancelCause(s.Context())
	defer cancel(nil)
	stale.OnLost(cancel)

	p.Inject(func(redistest.Command) redistest.Fault { return redistest.DropCommand })
	s.save(s.take(s.process(patient)), "rightful") // waits for the end of the lease
	<-ctx.Done()
	s.wantError("the holder's context", context.Cause(ctx), store.ErrLost)

	p.Inject(nil)
	s.wantError("Save", stale.Save(s.Context(), []byte("stale")), store.ErrLost)
	s.wantData("rightful")
	s.wantFree()
}

// All that an answered request sent comes again after others have written, each command alone
// and all in their order: it changes nothing.
func lateCommands(s *site) {
	a, p := s.tapped(patient)
	b := s.process(patient)
	s.create(b, "0")
	s.save(s.take(a), "1")
	late := p.Commands()
	for i, st := range []*store.Store{b, a, b} {
		s.save(s.take(st), fmt.Sprint(i+2))
	}
	for i := range late {
		s.again(late[i : i+1])
		s.wantData("4")
	}
	s.redis.Do(s, "DEL", lock) // the leases of what came late have run out
	s.again(late)
	s.wantData("4")
}

// again sends commands to Redis once more. Nobody reads the replies, and Redis may refuse.
func (s *site) again(commands []redistest.Command) {
	s.Helper()
	c := s.redis.Pool(s, 1).Get()
	defer c.Close()
	for _, command := range commands {
		if !isStores(command) {
			continue
		}
		args := make([]any, len(command.Args))
		for i, arg := range command.Args {
			args[i] = arg
		}
		_, err := c.Do(command.Name, args...)
		if _, refused := errors.AsType[redis.Error](err); err != nil && !refused {
			s.Fatal(err)
		}
	}
}

// A commit that reaches Redis after its sender has given up, and another has written, changes
// nothing.
func lateCommit(s *site) {
	a, p := s.tapped(hasty)
	b := s.process(patient)
	s.create(b, "first")
	s.save(s.take(b), "first") // Redis knows the scripts
	h := s.take(a)
	next(p, redistest.HangCommand)
	s.wantError("Save", h.Save(s.Context(), []byte("late")), store.ErrUnavailable)
	s.redis.Do(s, "DEL", lock) // its lease ends
	s.save(s.take(b), "rightful")
	holds := s.take(b)
	p.Release()
	s.save(holds, "next")
	s.wantData("next")
}

package store

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

// A lock that does not lock at all: each process has it on servers of its own, as
// after the worst of failovers. Of each kind, and still no write is lost: who
// came second is told so.
func TestNothingIsLostWhereTheLockFails(t *testing.T) {
	t.Parallel()
	o := locker.Options{Lease: patient.Lease, Wait: patient.Lease, Timeout: patient.Timeout / 2}
	for name, newLocker := range map[string]func(pool func() *redis.Pool) locker.Locker{
		"spin":      func(pool func() *redis.Pool) locker.Locker { return locker.NewSpin(pool(), o) },
		"timestamp": func(pool func() *redis.Pool) locker.Locker { return locker.NewTimestamp(pool(), o) },
		"redlock": func(pool func() *redis.Pool) locker.Locker {
			return locker.NewRedlock([]*redis.Pool{pool(), pool(), pool()}, o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
				s := &site{r, r}
				create(t, s.process(t), "0")
				var processes sync.WaitGroup
				const each = 25
				for range 2 {
					o := patient
					o.Locker = newLocker(func() *redis.Pool { return redistest.Embedded(t).Pool(t, 4) })
					st := New(r.Pool(t, 8), o)
					processes.Go(func() {
						for range each {
							mustIncrement(t, st)
						}
					})
				}
				processes.Wait()
				wantData(t, s, strconv.Itoa(2*each))
			})
		})
	}
}

// mustIncrement adds 1 to the number in the session, as often as it takes.
func mustIncrement(t *testing.T, st *Store) {
	for {
		h, err := st.Take(t.Context(), theID, Terms{})
		if err != nil {
			t.Error(err)
			return
		}
		n, err := strconv.Atoi(string(h.Record.Data))
		if err != nil {
			t.Error(err)
		}
		err = h.Save(t.Context(), []byte(strconv.Itoa(n+1)))
		if err == nil {
			return
		}
		if !errors.Is(err, ErrLost) {
			t.Error(err)
			return
		}
	}
}

package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// A client repeats a take whose connection broke. The first copy may reach Redis
// much later, when the lock was given back and others have had it. It gives the lock to
// a token that had it before, and so it must not give it the right to write as well.

// A tapped process reaches Redis by a proxy that knows what it sent.
type tapped struct {
	*store.Store
	proxy *redistest.Proxy
}

func tap(t *testing.T, r *redistest.Server) tapped {
	t.Helper()
	p := redistest.NewProxy(t, r)
	return tapped{store.New(p.Pool(t, 4), patient), p}
}

// again sends commands to Redis once more, from a connection that the process has
// given up. Nobody reads the replies, and Redis may refuse.
func again(t *testing.T, r *redistest.Server, commands []redistest.Command) {
	t.Helper()
	c := r.Pool(t, 1).Get()
	defer c.Close()
	for _, cmd := range commands {
		args := make([]any, len(cmd.Args))
		for i, arg := range cmd.Args {
			args[i] = arg
		}
		_, err := c.Do(cmd.Name, args...)
		if _, refused := errors.AsType[redis.Error](err); err != nil && !refused {
			t.Fatal(err)
		}
	}
}

// All that an answered request sent comes again after others have written: each
// command alone, and all in their order.
func TestLateTakeAndCommitChangeNothing(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"small": "", "large": strings.Repeat(" ", 10_000)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
				a, b := tap(t, r), open(t, r, patient)
				create(t, b, "0", store.Terms{})
				write(t, a.Store, "1"+more)
				late := a.proxy.Commands()
				write(t, b, "2"+more)
				write(t, a.Store, "3"+more)
				write(t, b, "4"+more)
				for i := range late {
					again(t, r, late[i:i+1])
					wantData(t, b, "4"+more)
				}
				r.Do(t, "DEL", theLock) // the leases of what came late have run out
				again(t, r, late)
				wantData(t, b, "4"+more)
			})
		})
	}
}

// Whoever lost the lock, and may not know it, gets ErrLost. The late copy of its take
// does not make it the holder again.
func TestLateTakeDoesNotMakeAStaleHolderWrite(t *testing.T) {
	t.Parallel()
	const maxHold = 100 * time.Millisecond
	deleted := func(t *testing.T, r *redistest.Server, _ *store.Hold) { r.Do(t, "DEL", theLock) }
	ways := map[string]struct {
		lose    func(t *testing.T, r *redistest.Server, h *store.Hold)
		maxHold time.Duration
	}{
		"past its MaxHold":     {func(t *testing.T, _ *redistest.Server, h *store.Hold) { toldLost(t, h) }, maxHold},
		"its lock was deleted": {deleted, 0},
	}
	for name, way := range ways {
		for what, end := range ends {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
					a, b := tap(t, r), open(t, r, patient)
					create(t, b, "0", store.Terms{})
					stale := take(t, a.Store, store.Terms{MaxHold: way.maxHold})
					late := a.proxy.Commands()
					way.lose(t, r, stale)
					write(t, b, "answered")
					again(t, r, late)
					wantError(t, what, end(t.Context(), stale), store.ErrLost)
					wantData(t, b, "answered")
					eventually(t, "the id that Renew would give is unknown", func() bool {
						_, err := b.Load(t.Context(), newID, store.Terms{})
						return errors.Is(err, store.ErrNotFound)
					})
				})
			})
		}
	}
}

// ends are the ways in which a hold writes.
var ends = map[string]func(ctx context.Context, h *store.Hold) error{
	"Save":    func(ctx context.Context, h *store.Hold) error { return h.Save(ctx, []byte("stale")) },
	"Renew":   func(ctx context.Context, h *store.Hold) error { return h.Renew(ctx, newID, []byte("stale")) },
	"Destroy": func(ctx context.Context, h *store.Hold) error { return h.Destroy(ctx) },
}

// A lock that was renamed, and comes back after others have written, is no better.
func TestLockThatComesBackDoesNotMakeAStaleHolderWrite(t *testing.T) {
	t.Parallel()
	for what, end := range ends {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
				a, b := open(t, r, patient), open(t, r, patient)
				create(t, b, "0", store.Terms{})
				stale := take(t, a, store.Terms{})
				r.Do(t, "RENAME", theLock, "elsewhere")
				write(t, b, "answered")
				r.Do(t, "RENAME", "elsewhere", theLock)
				wantError(t, what, end(t.Context(), stale), store.ErrLost)
				wantData(t, b, "answered")
			})
		})
	}
}

// The requests of a process that hold the session one after another have many
// tokens. All that they have sent comes again, and whoever holds the session last gets
// ErrLost.
func TestLateCommandsOfManyHoldsDoNotMakeAStaleHolderWrite(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		a, b := tap(t, r), open(t, r, patient)
		create(t, b, "0", store.Terms{})
		h := take(t, a.Store, store.Terms{})
		const holds = 3
		for i := range holds {
			next := begin(t, a.Store, store.Terms{LockWait: time.Minute})
			inLine(t, a.Store, 1)
			data := fmt.Sprint("hold ", i)
			save(t, h, data)
			h = next.wait(t, data)
		}
		late := a.proxy.Commands()
		r.Do(t, "DEL", theLock)
		write(t, b, "answered")
		again(t, r, late)
		wantError(t, "Save", h.Save(t.Context(), []byte("stale")), store.ErrLost)
		wantData(t, b, "answered")
	})
}

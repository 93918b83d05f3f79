package lease

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// executed is how many scripts a server has run, by its own count.
func executed(t *testing.T, server *redistest.Server) int {
	t.Helper()
	info, err := redis.String(server.Do(t, "INFO", "commandstats"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "cmdstat_evalsha:calls=")
	calls, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(calls)
	if err != nil {
		t.Fatalf("no count of scripts in %q", info)
	}
	return n
}

// A hundred callers wait for a lock that another process holds. They send Redis at
// most a fiftieth of what a hundred send that try again without sleep, in the same
// time: one of them stands for all, and it pauses between its tries.
func TestSleeplessCrowd(t *testing.T) {
	t.Parallel()
	const waiters, enough = 100, 10_000
	crowd := func(spinOf func(*redis.Pool) *peer) (server *redistest.Server, start func(context.Context) (done func())) {
		server = redistest.Real(t)
		pool := server.Pool(t, waiters)
		holder := mustLock(t, newSpin(server.Pool(t, 1), patient), "k")
		t.Cleanup(func() { mustUnlock(t, holder) })
		return server, func(ctx context.Context) func() {
			var all sync.WaitGroup
			for range waiters {
				spin := spinOf(pool)
				all.Go(func() {
					if _, err := spin.Lock(ctx, "k"); !errors.Is(err, context.Canceled) {
						t.Errorf("Lock: %v", err)
					}
				})
			}
			return all.Wait
		}
	}
	var one *peer
	queued, startQueued := crowd(func(pool *redis.Pool) *peer {
		if one == nil {
			one = newSpin(pool, Options{Lease: patient.Lease, Wait: patient.Wait, Timeout: patient.Timeout})
		}
		return one
	})
	sleepless, startSleepless := crowd(func(pool *redis.Pool) *peer {
		o := patient
		o.Backoff = Backoff{Max: 1}
		unqueued := struct{ Algorithm }{newSpin(pool, o).algorithm}
		return &peer{algorithm: unqueued, options: o} // one each: no queue helps
	})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fewBefore, manyBefore := executed(t, queued), executed(t, sleepless)
	doneQueued, doneSleepless := startQueued(ctx), startSleepless(ctx)
	eventually(t, "enough tries", func() bool { return executed(t, sleepless)-manyBefore >= enough })
	few, many := executed(t, queued)-fewBefore, executed(t, sleepless)-manyBefore
	cancel()
	doneQueued()
	doneSleepless()
	t.Logf("%d commands with pauses and a queue, %d without: %.2f %%", few, many, 100*float64(few)/float64(many))
	if few == 0 || 50*few > many {
		t.Errorf("%d commands, where those without sleep sent %d", few, many)
	}
}

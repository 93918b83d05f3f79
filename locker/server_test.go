package locker

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// patient are options for tests on servers that are not about time: nothing expires or times out, even on a busy
// machine.
var patient = Options{Lease: time.Minute, Wait: time.Minute, Timeout: 10 * s}

// noWait are the options of a single try.
func noWait() Options {
	o := patient
	o.Wait = NoWait
	return o
}

// inFakeTime runs f in fake time, and then waits until everything under way has ended.
func inFakeTime(t *testing.T, f func(t *testing.T, server *redistest.Server)) {
	t.Helper()
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, server *redistest.Server) {
		t.Cleanup(func() { redistest.Elapse(time.Hour) })
		f(t, server)
	})
}

// fakeTime is a subtest in fake time.
func fakeTime(f func(t *testing.T, server *redistest.Server)) func(*testing.T) {
	return func(t *testing.T) { inFakeTime(t, f) }
}

// Years lead from the beginning of fake time, in 2000, to moments that a Timestamp knows.
const Years = 20 * 365 * 24 * time.Hour

// inTheseYears runs f in fake time, in a year that Timestamp accepts.
func inTheseYears(t *testing.T, f func(t *testing.T, server *redistest.Server)) {
	t.Helper()
	inFakeTime(t, func(t *testing.T, server *redistest.Server) {
		redistest.Elapse(Years)
		f(t, server)
	})
}

// theseYears is a subtest in fake time, in such a year.
func theseYears(f func(t *testing.T, server *redistest.Server)) func(*testing.T) {
	return func(t *testing.T) { inTheseYears(t, f) }
}

// With Spin, waiting processes are notified when the lock is free, so no time is lost.
func TestSpinWaitsForANotification(t *testing.T) {
	for name, lock := range map[string]func(pool *redis.Pool) Locker{
		"NewSpin": func(pool *redis.Pool) Locker { return NewSpin(pool, patient) },
		"SpinAlgorithm": func(pool *redis.Pool) Locker {
			return New(SpinAlgorithm(transport.NewRedigo(pool, s)), patient)
		},
	} {
		t.Run(name, fakeTime(func(t *testing.T, server *redistest.Server) {
			held, begin := mustLock(t, lock(server.Pool(t, 4))), time.Now()
			time.AfterFunc(9*s, func() { mustUnlock(t, held) })
			l := mustLock(t, lock(server.Pool(t, 4)))
			wantTook(t, "the wait", begin, 9*s)
			mustUnlock(t, l)
		}))
	}
}

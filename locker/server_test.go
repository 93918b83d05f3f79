package locker

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// patient are options for tests on servers that are not about time: nothing runs
// out, even on a machine that is busy with something else.
var patient = Options{Lease: time.Minute, Wait: time.Minute, Timeout: 10 * s}

// onServers runs f against an embedded Redis and against a real one.
func onServers(t *testing.T, f func(t *testing.T, server *redistest.Server)) {
	t.Parallel()
	redistest.EachInRealTime(t, f)
}

// newProcess returns what one process has: a pool and a Spin. Two of them know
// nothing of each other.
func newProcess(t *testing.T, server *redistest.Server, o Options) *Spin {
	return NewSpin(server.Pool(t, 8), o)
}

func mustExtend(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Extend(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
}

func mustUnlock(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// eventually waits for something that takes a moment. It has patience with busy
// machines: what a lease's end brings about by itself takes much longer still.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * s); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// hasty are options for tests in which Redis does not answer. The lease is so long
// that no lock of nobody's ends by itself during a test.
var hasty = Options{Lease: 10 * time.Minute, Wait: 10 * s, Timeout: 300 * time.Millisecond}

// sequence injects one fault after another, and then none.
func sequence(proxy *redistest.Proxy, faults ...redistest.Fault) {
	proxy.Inject(func(redistest.Command) redistest.Fault {
		if len(faults) == 0 {
			return redistest.Pass
		}
		fault := faults[0]
		faults = faults[1:]
		return fault
	})
}

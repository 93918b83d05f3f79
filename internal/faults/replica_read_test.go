package faults

import (
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// The address leads to a replica by mistake, and one that lags behind. A session that the
// replica does not have may exist, and one that it has may be old. So all requests with a
// session get a 503, even reads, until the address leads to a master.
func TestReplicaIsRefused(t *testing.T) {
	f := stageFailover(t, "the address leads to a lagging replica", "P8: never an empty session where there is one", false, setting{demos: 1})
	d := f.demos[0]
	known := f.guest(d)
	known.must("on the master", known.post(d, "/incr"), 200, "1")
	heard(t, f.redis, f.replica)
	f.lag()
	unknown := f.guest(d)
	unknown.must("on the master", unknown.post(d, "/incr"), 200, "1")
	known.must("on the master", known.post(d, "/incr"), 200, "2")
	if has, want := len(numbers(t, f.replica)), len(numbers(t, f.redis))-1; has != want {
		t.Fatalf("the replica has %d records, want %d", has, want)
	}

	refuses := func(what string) {
		t.Helper()
		var asking sync.WaitGroup // each is refused after a while, so all ask at once
		for _, path := range []string{"/count", "/result"} {
			asking.Go(func() { known.must(what+", a session that it has", known.get(d, path), 503, "") })
			asking.Go(func() { unknown.must(what+", a session that it does not have", unknown.get(d, path), 503, "") })
		}
		for _, path := range []string{"/incr", "/login", "/logout"} {
			asking.Go(func() { known.must(what+", a session that it has", known.post(d, path), 503, "") })
			asking.Go(func() { unknown.must(what+", a session that it does not have", unknown.post(d, path), 503, "") })
		}
		nobody := f.guestWith("")
		nobody.must(what+", no session", nobody.get(d, "/count"), 200, "0")
		nobody.must(what+", a new session", nobody.post(d, "/incr"), 503, "")
		asking.Wait()
	}
	f.lead(f.replica)
	f.addresses[0].Drop()
	refuses("a replica")
	f.replica.Do(t, "CONFIG", "SET", "replica-serve-stale-data", "no")
	f.link.Cut()
	eventually(t, lockWait, "the replica knows that its master is gone", func() bool { return rig.LinkDown(t, f.replica) })
	refuses("a replica without master")

	f.lead(f.redis)
	f.addresses[0].Drop()
	known.must("back on the master", known.get(d, "/count"), 200, "2")
	unknown.must("back on the master", unknown.post(d, "/incr"), 200, "2")
	f.nothingLeft()
}

package faults

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
)

// The replica receives nothing for a while, the master dies, and the replica takes its place. Writes that the
// replica had not received are lost. Otherwise nothing is wrong: each record is a version that existed, and later
// writes build on it.
func TestFailoverToLaggingReplica(t *testing.T) {
	f := stageFailover(t, "master killed, replica behind", "P1: only what the replica had not received is lost", false, setting{})
	f.run(func(ctx context.Context) {
		f.lag()
		f.awaitWrites("while the replica hears nothing", time.Now())
		f.kill()
		f.promote()
		f.follow()
	})
	f.seen = fmt.Sprintf("%d answered writes lost", f.lost)
	happened(t, "a write was lost", f.lost, 1)
}

// FAILOVER makes the master pause, lets its replica catch up, and swaps the roles. Nothing is lost. The open
// connections now lead to a replica, and are closed at the first READONLY. Requests wait until the address leads
// to the new master. They fail only if all that takes longer than their lease.
func TestFailoverByCommand(t *testing.T) {
	f := stageFailover(t, "FAILOVER, the address follows 200 ms later", "P1: nothing lost", true, setting{logins: true, lease: patient})
	old := f.redis
	f.run(func(ctx context.Context) {
		old.Do(t, "FAILOVER")
		eventually(t, 10*time.Second, "the roles are swapped", func() bool {
			return rig.Role(old) == "slave" && rig.Role(f.replica) == "master"
		})
		pause(ctx, 200*time.Millisecond)
		f.redis = f.replica
		f.lead(f.replica)
	})
	n := info(t, old, "errorstat_READONLY:count=")
	f.seen = fmt.Sprintf("READONLY %d times", n)
	happened(t, "a request has reached the old master as a replica", n, 1)
	if n := f.logged("READONLY"); n > 0 {
		t.Errorf("%d requests have failed", n)
	}
}

// Redis fails over just after a login or a logout. If the replica had received that, the old ID stays dead. If
// not, it is lost like any other write: the old ID is alive again, as before, and the new ID is unknown. An
// unknown ID is never adopted.
func TestFailoverAfterLoginAndLogout(t *testing.T) {
	for _, received := range []bool{true, false} {
		name, promise := "received it", "P4: out means out, also after a failover"
		if !received {
			name, promise = "did not receive it", "P4, its limit: the old ID is alive again, as it was"
		}
		t.Run("the replica "+name, func(t *testing.T) {
			f := stageFailover(t, "failover after a login and a logout, the replica "+name, promise, false, setting{demos: 1})
			d := f.demos[0]
			in, out := f.guest(d), f.guest(d)
			for range 3 {
				in.post(d, "/incr")
				out.post(d, "/incr")
			}
			heard(t, f.redis, f.replica)
			if !received {
				f.lag()
			}
			before := *in
			in.login(d)
			in.must("after the login", in.post(d, "/incr"), 200, "4")
			out.must("the logout", out.post(d, "/logout"), 204, "")
			if received {
				heard(t, f.redis, f.replica)
			} else {
				pause(context.Background(), 20*time.Millisecond) // enough for the write to pass if the link were not cut
			}
			f.kill()
			f.promote()
			f.follow()
			eventually(t, lockWait, "the demo reaches the new master", func() bool { return in.get(d, "/healthz").status == 200 })

			if received {
				in.must("the new ID", in.post(d, "/incr"), 200, "5")
				for g, want := range map[*guest]reply{&before: {status: 409}, out: {status: 200, text: "1"}} {
					g.must("an ID that has ended or moved", g.get(d, "/count"), 200, "0")
					got := g.post(d, "/incr")
					g.must("an ID that has ended or moved", got, want.status, want.text)
					if begun := got.cookie != ""; begun != (want.status == 200) {
						t.Errorf("with an ID that has ended or moved: %d, new cookie: %v", got.status, begun)
					}
				}
			} else {
				for _, g := range []*guest{&before, out} {
					g.must("an ID that was ended", g.post(d, "/incr"), 200, "4")
				}
				in.mustBeForgotten(d) // the ID is not adopted
			}
			f.nothingLeft()
		})
	}
}

// A failover loses writes that the replica has not received: logins, together with their places on the list, and
// an EndAll. No session is usable that is not on the list, and the next EndAll ends the sessions that have come
// back.
func TestFailoverLosesLoginsWhole(t *testing.T) {
	f := stageFailover(t, "master killed, replica behind by logins and an EndAll", "P14: a session and its place on the list are lost together",
		false, setting{visitors: 2, slack: 4 * slack})
	f.run(func(ctx context.Context) {
		old, ended := f.member(f.demos[0], "ann"), f.member(f.demos[0], "bob")
		heard(t, f.redis, f.replica)
		f.lag()
		young := f.member(f.demos[1], "ann")
		first := f.member(f.demos[1], "eve")
		ended.mustEndAll(f.demos[0], f.demos[1], 1)
		pause(ctx, 100*time.Millisecond)
		f.kill()
		f.promote()
		f.follow()

		first.must("a read of what was lost", first.get(f.demos[0], "/count"), 200, "0")
		young.must("a read of what was lost", young.get(f.demos[0], "/count"), 200, "0")
		ended.mustEndAll(f.demos[0], f.demos[1], 1)
		old.must("a read of what was replicated", old.get(f.demos[1], "/count"), 200, "1")
		old.mustEndAll(f.demos[1], f.demos[0], 1)
		f.member(f.demos[0], "eve").mustEndAll(f.demos[0], f.demos[1], 1)
	})
}

// By mistake the address leads to a replica that lags behind. A session that the replica does not have may exist,
// and a session that it has may be old. So all requests with a session get a 503, even reads, until the address
// leads to a master.
func TestReplicaIsRefused(t *testing.T) {
	f := stageFailover(t, "the address leads to a lagging replica", "P8: no empty session in place of a real one", false, setting{demos: 1})
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
		var asking sync.WaitGroup // each is refused only after a while, so all ask at once
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

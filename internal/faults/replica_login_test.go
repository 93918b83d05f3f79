package faults

import (
	"context"
	"testing"
	"time"
)

// Redis fails over just after a login, or a logout. If the replica had received it, the old
// id stays dead. If not, it is lost like any other write: the old id is alive again, as it
// was before, and the new one is unknown. But an unknown id is never adopted.
func TestFailoverAfterLoginAndLogout(t *testing.T) {
	for _, received := range []bool{true, false} {
		name, promise := "heard of it", "P4: out means out, after a failover, too"
		if !received {
			name, promise = "did not hear of it", "P4, its limit: the old id is alive again, as it was"
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
				pause(context.Background(), 20*time.Millisecond) // would let it through if the link were not cut
			}
			f.kill()
			f.promote()
			f.follow()
			eventually(t, lockWait, "the demo reaches the new master", func() bool { return in.get(d, "/healthz").status == 200 })

			if received {
				in.must("the new id", in.post(d, "/incr"), 200, "5")
				for _, g := range []*guest{&before, out} {
					g.must("an ended id", g.get(d, "/count"), 200, "0")
					got := g.post(d, "/incr")
					g.must("an ended id", got, 409, "")
					if got.cookie != "" {
						t.Error("an ended id got a cookie")
					}
				}
			} else {
				for _, g := range []*guest{&before, out} {
					g.must("an id that was ended", g.post(d, "/incr"), 200, "4")
				}
				in.mustBeForgotten(d) // and not adopted
			}
			f.nothingLeft()
		})
	}
}

package faults

import (
	"context"
	"testing"
	"time"
)

// A failover loses what the replica has not heard: of logins, the session and its place on the list
// together, and of an EndAll, that. Nobody is in a session that no list shows, and an EndAll after
// that ends what has come back.
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

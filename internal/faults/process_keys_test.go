package faults

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
)

const (
	oldKey = demotest.Key
	newKey = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
)

// restartAll replaces each process by one with the given flags.
func (s *scene) restartAll(flags ...string) (restarted int) {
	s.Helper()
	for _, old := range slices.Clone(s.demos) {
		if old.Alive() {
			s.add(s.redis.URL, flags...)
			s.replace(old)
			restarted++
		}
	}
	return restarted
}

// anyDemo returns one that is alive.
func (s *scene) anyDemo() *demotest.Demo { return s.demos[len(s.demos)-1] }

// The first two deployments of a new key: after the old one, and before it. In the
// meantime processes with and without it serve the same sessions.
func TestKeyRotated(t *testing.T) {
	t.Parallel()
	s := stage(t, "rolling restarts: a new key behind the old one, then before it", "nobody is logged out", setting{logins: true})
	restarts := 0
	s.run(func(context.Context) {
		g, want := s.guest(s.anyDemo()), []string{}
		for i, keys := range []string{oldKey + "," + newKey, newKey + "," + oldKey} {
			restarts += s.restartAll("-key", keys)
			want = append(want, fmt.Sprint(i))
			g.mustSet(s.anyDemo(), fmt.Sprint(i))
			g.mustHave(s.anyDemo(), want...)
		}
	})
	s.seen = fmt.Sprintf("%d processes replaced", restarts)
}

// The third deployment, without the old key. Sessions that began after the second one are
// not affected. An older cookie opens nothing, and does no harm.
func TestOldKeyDropped(t *testing.T) {
	t.Parallel()
	s := stage(t, "rolling restart: the old key is dropped", "nobody is logged out whose session began since the new one signs",
		setting{logins: true, flags: []string{"-key", newKey + "," + oldKey}})
	restarts := 0
	s.run(func(context.Context) {
		before := demotest.Start(t, "-redis", s.redis.URL)
		old, young := s.guest(before), s.guest(s.anyDemo())
		old.mustSet(s.anyDemo(), "old")
		young.mustSet(s.anyDemo(), "young")
		stored := s.recordWith("param_old")
		restarts = s.restartAll("-key", newKey)
		young.mustHave(s.anyDemo(), "young")
		old.mustHave(s.anyDemo())
		if after := s.recordWith("param_old"); after != stored {
			t.Errorf("the record of a session that nobody can open was %q and is %q", stored, after)
		}
	})
	s.seen = fmt.Sprintf("%d processes replaced", restarts)
}

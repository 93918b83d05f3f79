package faults

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/overlay"
)

// laterVersion is like a possible later version: it has other scripts, with other hashes; tokens that say
// more about the holder; and a value in the session that this version does not know.
var laterVersion = demotest.Variant{Edits: append(otherScripts(),
	overlay.In("internal/lease", "NewToken").Replace("string(b)", `string(b) + " later"`),
	overlay.In("cmd/demo", "incr").After(`s.Set("n", v)`, `s.Set("later", v)`),
)}

// otherQueues is a version whose processes wait in other queues, so that a process of one version never
// notifies a process of the other that a session is free.
var otherQueues = demotest.Variant{Edits: append(otherScripts(),
	overlay.In("internal/records", "Engine.keys").InStrings(".queue", ".line"),
	overlay.In("internal/lease", "queueKey").InStrings(".queue", ".line"),
)}

// foreignVersion is a version with records that this version cannot read.
var foreignVersion = demotest.Variant{Edits: []overlay.Edit{
	overlay.In("internal/records", "head").InStrings(`"v":2`, `"v":3`),
	overlay.Rule("a record is of version 2").All().Swap(`"v":2`, `"v":3`),
}}

func otherScripts() (edits []overlay.Edit) {
	for _, name := range []string{
		"internal/records/take.lua", "internal/records/load.lua", "internal/records/commit.lua", "internal/records/extend.lua", "internal/records/create.lua",
		"internal/records/drop.lua", "internal/records/optimistic.lua", "internal/lua/times.lua", "internal/lua/record.lua",
		"internal/lease/take.lua", "internal/lease/pass.lua", "internal/lease/release.lua", "internal/lease/extend.lua", "internal/lease/quit.lua", "internal/lua/queue.lua",
	} {
		edits = append(edits, overlay.Append(name, "\n-- of another version\n"))
	}
	return edits
}

// addVariant starts one more process, of another version.
func (s *scene) addVariant(v *demotest.Variant, flags ...string) *demotest.Demo {
	s.Helper()
	d := s.startVariant(v, flags...)
	s.open(d)
	return d
}

// startVariant is addVariant, but no visitor sends requests to the process.
func (s *scene) startVariant(v *demotest.Variant, flags ...string) *demotest.Demo {
	s.Helper()
	return v.Start(s.T, append([]string{"-redis", s.redis.URL, "-lease", lease.String(), "-lock-wait", lockWait.String()}, flags...)...)
}

// Two versions serve the same sessions during a rolling restart, and while it is rolled back.
func TestVersionsMixed(t *testing.T) {
	mixed(t, "rolling restart with a later version, and back", &laterVersion, ".queue", func(s *scene, n int) {
		// This version made the last write, and the later version the one before.
		if record := s.recordWith("param_waited"); !strings.Contains(record, fmt.Sprintf(`"later":%d,"n":%d`, n-1, n)) {
			t.Errorf("after %d writes, what the later version has stored is not in %s", n, record)
		}
	})
}

// Two versions serve the same sessions, and neither sees the other's queues.
func TestVersionsWithOtherQueues(t *testing.T) {
	mixed(t, "rolling restart with a version that queues elsewhere, and back", &otherQueues, ".line", func(s *scene, n int) {
		eventually(t, s.longest, "no queue of that version is left", func() bool {
			return !slices.ContainsFunc(s.redis.Keys(t), func(key string) bool { return strings.HasSuffix(key, ".line") })
		})
	})
}

// mixed replaces one process by another version, then the other process, and rolls back. queue is the suffix of
// the keys of that version's queues. A guest's requests go to both versions in turn; check examines the result.
func mixed(t *testing.T, fault string, version *demotest.Variant, queue string, check func(s *scene, n int)) {
	version.Build(t) // before there is load
	s := stage(t, fault, "P1: nothing lost", setting{logins: true, flags: []string{"-work", "300ms"}})
	n := 0
	s.run(func(context.Context) {
		g := s.guest(s.demos[0])
		alternate := func(a, b *demotest.Demo) {
			for i := range 10 {
				n++
				g.must("a write", g.post([]*demotest.Demo{a, b}[i%2], "/incr"), http.StatusOK, fmt.Sprint(n))
			}
		}
		first, second := s.demos[0], s.demos[1]
		third := s.addVariant(version)
		s.replace(first)
		s.mustQueue(g, second, third, queue)
		alternate(second, third)
		fourth := s.addVariant(version)
		s.replace(second)
		alternate(third, fourth)
		fifth := s.add(s.redis.URL)
		s.replace(third)
		alternate(fourth, fifth)
	})
	check(s, n)
}

// mustQueue makes a guest's request hold its session in one process, and another request wait for it in
// another process, in a queue whose key has the given suffix.
func (s *scene) mustQueue(g *guest, holds, waits *demotest.Demo, queue string) {
	s.Helper()
	h, second := s.holdAndWait(g, holds, waits, queue)
	g.must("the request that held the session", <-h.replies, http.StatusOK, "ok")
	g.must("the request that waited", <-second, http.StatusOK, "ok")
}

// If the two versions have different formats of records, neither reads the other's records, or overwrites them.
func TestVersionsIncompatible(t *testing.T) {
	foreignVersion.Build(t)
	s := stage(t, "a version with another format of records", "P13: reported, and left as it is", setting{logins: true})
	s.run(func(context.Context) {
		ours, theirs := s.demos[0], s.startVariant(&foreignVersion)
		for _, way := range []struct{ owner, other *demotest.Demo }{{theirs, ours}, {ours, theirs}} {
			g := s.guest(way.owner)
			g.mustSet(way.owner, "kept")
			stored := s.recordWith("param_kept")
			for _, path := range []string{"/incr", "/set", "/login", "/logout", "/reset"} {
				g.must(path+" with a record of the other's", g.post(way.other, path), http.StatusInternalServerError, "")
			}
			if after := s.recordWith("param_kept"); after != stored {
				t.Errorf("the record was %q and is %q", stored, after)
			}
			g.mustHave(way.owner, "kept")
			g.must("/logout", g.post(way.owner, "/logout"), http.StatusNoContent, "")
		}
	})
}

// Each variant of the demo fits the present sources: the code that it changes exists. make check runs this test
// first, since a whole run takes long to show it.
func TestEveryVariantApplies(t *testing.T) {
	for what, v := range map[string]*demotest.Variant{
		"a later version": &laterVersion, "other queues": &otherQueues, "foreign records": &foreignVersion,
		"panics": &panicking, "another clock": &clockwork,
	} {
		if _, err := overlay.Apply(v.Edits); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

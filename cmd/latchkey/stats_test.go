package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

// id returns one of many IDs.
func id(n int) string { return fmt.Sprintf("%021d", n) + "A" }

// A few large sessions have most of the bytes. The estimate of the memory contains them, whichever sessions are sampled.
func TestStatsEstimatesTheMemory(t *testing.T) {
	s, st := withRedis(t)
	const n = 300
	real := int64(0)
	for i := range n {
		size := 100
		if i%30 == 0 {
			size = 32_500 // a little less than what Redis allocates for it
		}
		begin(t, st, id(i), `{"x":"`+strings.Repeat("x", size)+`"}`)
		real += s.Do(t, "MEMORY", "USAGE", keyOf(id(i))).(int64)
	}
	if got := decoded[report](t, s.URL, "stats").AllMemory; got < real*3/4 || got > real*3/2 {
		t.Errorf("the estimate is %d bytes, and Redis uses %d", got, real)
	}
}

// stats counts sessions and other keys, and says how large and old the sessions are.
func TestStats(t *testing.T) {
	s, st := withRedis(t)
	const n = 1200 // more than a batch
	for i := range n {
		r := records.Record{Data: []byte(`{"x":"` + strings.Repeat("x", 100) + `"}`), Created: time.Now().Add(-time.Hour)}
		if i == 7 {
			r = records.Record{Data: []byte(`{"x":"` + strings.Repeat("x", 5000) + `"}`), Created: time.Now().Add(-10 * time.Hour)}
		}
		if err := records.Of(st).CreateRecord(t.Context(), id(i), r, records.Terms{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		login(t, st, "ann", "", i)
	}
	login(t, st, "bob", "", 0)
	for i := range 3 {
		if err := hold(t, st, id(i), "").Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := hold(t, st, id(10), "").Renew(t.Context(), id(n), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	hold(t, st, id(20), "")
	s.Do(t, "SET", "latchkey:{"+id(21)+"}", "junk")
	s.Do(t, "PERSIST", "latchkey:{"+id(22)+"}")
	s.Do(t, "SET", "latchkey:notes", "1") // which the pattern leaves out
	s.Do(t, "SET", "latchkey:{note}", "1")
	s.Do(t, "SET", "another", "1")

	got := decoded[report](t, s.URL, "stats")
	want := tally{Sessions: n - 3 - 1 + 6, Owned: 6, Users: 2, Ended: 3, Renewed: 1, Held: 1, Endless: 1, Unreadable: 1, UnreadableIDs: []string{id(21)}, Others: 1}
	if !reflect.DeepEqual(got.tally, want) {
		t.Errorf("%+v, want %+v", got.tally, want)
	}
	if b := got.Bytes; b.Median < 120 || b.Median > 200 || b.Largest < 5000 || b.Largest > 5100 {
		t.Errorf("%+v", b)
	}
	if m := got.Memory; got.MemoryOf < 10 || m.Median < 200 || m.Median > 1000 || got.AllMemory < 200*n {
		t.Errorf("%+v of %d, %d in all", m, got.MemoryOf, got.AllMemory)
	}
	if a := got.Age; a.Median < 3500 || a.Median > 3700 || a.Largest < 35900 || a.Largest > 36100 {
		t.Errorf("%+v", a)
	}
	if l := got.Left; l.Median < 1700 || l.Median > 1800 {
		t.Errorf("%+v", l)
	}
	text := must(t, s.URL, "stats")
	contains(t, text, "MASTER", s.Addr, "1,202", "record ", "memory, sampled ", "age ", "time left ", "1 record cannot be read", "show ID says more: "+id(21)+"\n", "1 record without a timeout")

	for i := 30; i < 40; i++ {
		s.Do(t, "SET", keyOf(id(i)), "junk")
	}
	if got := decoded[report](t, s.URL, "stats"); len(got.UnreadableIDs) != 5 || got.Unreadable != 11 {
		t.Errorf("%d records cannot be read, of which %q are named", got.Unreadable, got.UnreadableIDs)
	}
	limited := decoded[report](t, s.URL, "stats", "--limit", "10")
	if limited.Sessions != 10 || !limited.Incomplete || got.Incomplete {
		t.Errorf("limited to ten: %+v", limited.tally)
	}
	contains(t, must(t, s.URL, "stats", "--limit", "10"), "stopped at --limit 10")
}

// Sessions that were ended with all of their user have ended, although their records stay for a minute. Others that expire
// as soon have not.
func TestStatsAfterTheEndOfAUser(t *testing.T) {
	s, st := withRedis(t)
	for i := range 3 {
		login(t, st, "ann", "", i)
	}
	kept := login(t, st, "ann", "", 3)
	soon := login(t, st, "bob", "", 0)
	s.Do(t, "PEXPIRE", keyOf(soon), "50000")
	contains(t, must(t, s.URL, "end", "--user", "ann", "--except", kept), "3 sessions ended")
	if got := decoded[report](t, s.URL, "stats"); got.Sessions != 2 || got.Owned != 2 || got.Ended != 3 || got.Left.Largest < 1000 {
		t.Errorf("%+v, with %+v left", got.tally, got.Left)
	}
	s.Do(t, "DEL", "latchkey:{"+tagOf(soon)+"}.user")
	s.Do(t, "LPUSH", "latchkey:{"+tagOf(soon)+"}.user", "junk") // so nothing is known
	if got := decoded[report](t, s.URL, "stats"); got.Sessions != 2 || got.Ended != 3 {
		t.Errorf("beside a foreign mark: %+v", got.tally)
	}
}

// Only the keys of one prefix are looked at, whatever characters it has.
func TestStatsOfAPrefix(t *testing.T) {
	s, other := withRedis(t)
	if text := must(t, s.URL, "stats"); strings.Count(text, "\n") != 3 || !strings.Contains(text, s.Addr) || !strings.Contains(text, `no key begins with "latchkey:{"`) {
		t.Errorf("of nothing: %q", text)
	}
	begin(t, other, first, "{}")
	for _, prefix := range []string{"a*", "b?[c]", `d\`} {
		begin(t, opened(t, s.URL, store.Options{Prefix: prefix}), first, "{}")
		if got := decoded[report](t, s.URL, "stats", "--prefix", prefix); got.Sessions != 1 || got.Others != 0 {
			t.Errorf("with %q: %+v", prefix, got.tally)
		}
	}
}

// If a master fails halfway, stats leaves out what it has counted there: half a sum would look like a whole one.
func TestStatsLeavesOutWhatFailed(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	hold(t, st, first, "")
	s.Do(t, "ACL", wordsOf("SETUSER operator on >pw ~* &* +@all -getrange")...)
	j := connected(t, "stats", "redis://operator:pw@"+s.Addr)
	counted := &survey{job: j, bar: newProgress(nil, 0)}
	_, err := j.lookAtAll(func(n *node, _ func(int)) error { return counted.count(n) })
	if err == nil || len(counted.nodes) > 0 || counted.all.Held != 0 {
		t.Errorf("%v: %+v", err, counted.all)
	}
}

// connected returns a command that is about to run.
func connected(t *testing.T, command, url string) *job {
	t.Helper()
	o, err := find(command).parse(nil, func(name string) string { return map[string]string{redisVariable: url}[name] })
	if err != nil {
		t.Fatal(err)
	}
	r, err := connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return &job{ctx: t.Context(), options: o, redis: r}
}

// Only what counts as a session is measured.
func TestMemoryIsThatOfSessions(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	for i := range 20 {
		s.Do(t, "RPUSH", keyOf(id(i)), strings.Repeat("x", 100_000))
	}
	if got := decoded[report](t, s.URL, "stats"); got.Sessions != 1 || got.Memory.Largest > 1000 {
		t.Errorf("%d sessions have %+v", got.Sessions, got.Memory)
	}
}

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// end --all ends all sessions of users and guests, also those in use and, without the keys, those that are encrypted.
// It is silent about sessions that have ended before, and leaves other programs' sessions and records as they are.
func TestEndOfAll(t *testing.T) {
	s, st := withRedis(t)
	sealed := opened(t, s.URL, store.Options{Encryption: store.Encryption{Keys: [][]byte{[]byte(strings.Repeat("key!", 8))}}})
	other := opened(t, s.URL, store.Options{Prefix: "other:"})
	begin(t, other, first, "{}")
	const n = 120 // more than a scan finds at once
	all := guests(t, st, n)
	for i := range 5 {
		all = append(all, login(t, st, "ann", "", i), login(t, sealed, "bob", "", i))
	}
	begin(t, sealed, second, "{}")
	all = append(all, second)
	for _, id := range []string{all[3], all[n]} { // they have ended before
		if err := records.Of(st).End(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	all = slices.Delete(slices.Delete(all, n, n+1), 3, 4)
	held := hold(t, st, all[0], "GET /events")

	var report struct {
		Ended []string
		Away  []away
	}
	text := must(t, s.URL, "end", "--all", "--json")
	if err := json.Unmarshal([]byte(text), &report); err != nil || len(report.Away) != 0 || !strings.Contains(text, `"away":[],"complete":true}`) {
		t.Errorf("%v: %s", err, text)
	}
	if slices.Sort(report.Ended); !slices.Equal(report.Ended, slices.Sorted(slices.Values(all))) {
		t.Errorf("%d were ended, want %d", len(report.Ended), len(all))
	}
	if err := held.Save(t.Context(), []byte("{}")); err == nil {
		t.Error("a holder has saved its session")
	}
	for _, id := range all { // this is what streams ask
		if _, err := records.Of(st).Alive(t.Context(), id, records.Terms{Lifetime: time.Hour}); !errors.Is(err, store.ErrGone) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if r := call(t, s.URL, "end", "--all"); r != (result{"0 sessions ended\n", "", exitOK}) {
		t.Errorf("once more: %+v", r)
	}
	r := call(t, s.URL, "end", "--all", "--prefix", "wrong:")
	if r.stdout != "0 sessions ended\n" || r.code != exitOK || !strings.Contains(r.stderr, "--prefix") {
		t.Errorf("with a wrong prefix: %+v", r)
	}
	contains(t, must(t, s.URL, "show", first, "--prefix", "other:"), first)

	s.Do(t, "SET", keyOf(first), "junk")
	s.Do(t, "RPUSH", keyOf(id(n)), "junk")
	begin(t, st, id(n+1), "{}")
	r = call(t, s.URL, "end", "--all")
	if r.stdout != "1 session ended\n" || r.code != exitError || get(t, s, keyOf(first)) != "junk" {
		t.Errorf("with records of another program: %+v", r)
	}
	contains(t, r.stderr, "2 records are left as they are, since another program has written them, or another version; latchkey stats names some\n")
}

// Keys that another program has written stop nothing: a tombstone that leads to itself or to no ID, and the mark or the list
// of a user.
func TestEndOfAllMeetsForeignKeys(t *testing.T) {
	s, st := withRedis(t)
	const users = 20
	var all []string
	for i := range users {
		all = append(all, login(t, st, fmt.Sprint("user-", i), "", 1))
	}
	tombstone := func(id, to string) {
		s.Do(t, "SET", keyOf(id), fmt.Sprintf(`{"v":2,"s":"mNluFKCCw7udQjgH","gone":9999999999999,"to":"%s"}`, to), "PX", "60000")
	}
	tombstone(first, first)
	tombstone(second, "no ID")
	tombstone(id(1), id(2))
	tombstone(id(2), id(1))
	for i, key := range []string{".user", ".list"} {
		tag, _, _ := strings.Cut(all[i], ".")
		s.Do(t, "DEL", "latchkey:{"+tag+"}"+key)
		s.Do(t, "LPUSH", "latchkey:{"+tag+"}"+key, "junk")
	}
	r := call(t, s.URL, "end", "--all")
	if r.stdout != fmt.Sprintf("%d sessions ended\n", users-1) || r.code != exitError {
		t.Errorf("%+v", r)
	}
	contains(t, r.stderr, "5 records are left as they are, since another program has written them, or another version; latchkey stats names some\n")
}

// purging returns end --all as it begins, and what it prints on stderr.
func purging(t *testing.T, st *store.Store, args ...string) (*purge, *bytes.Buffer) {
	t.Helper()
	o, err := find("end").parse(append([]string{"--all"}, args...), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	r, err := connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.client.Close)
	var stderr bytes.Buffer
	out := streams{Writer: bufio.NewWriter(io.Discard), stderr: &stderr}
	return &purge{job: &job{ctx: t.Context(), options: o, redis: r, out: out}, store: st,
		pass: &pass{bar: newProgress(&stderr, 0), begun: time.Now()}}, &stderr
}

// If a session gets a new ID while end --all runs, it is ended under the new ID, although SCAN may not find that. If
// the ID is sealed with a key that is missing, end --all says so, and fails.
func TestEndOfAllFollowsNewIDs(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	o := store.Options{Encryption: store.Encryption{Keys: [][]byte{[]byte(strings.Repeat("key!", 8))}}}
	sealed := opened(t, s.URL, o)
	renewed := func(from int) (keys []string, to string) {
		t.Helper()
		begin(t, sealed, id(from), "{}")
		for i := from; i < from+2; i++ { // twice
			if err := hold(t, sealed, id(i), "").Renew(t.Context(), id(i+1), []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		return []string{keyOf(id(from)), keyOf(id(from)) + ".lock", "latchkey:{note}"}, id(from + 2)
	}
	end := func(p *purge, keys []string) {
		t.Helper()
		masters, err := p.redis.masters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids, err := p.choose(masters[0], keys)
		if err == nil {
			err = p.endThese(ids)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	p, stderr := purging(t, sealed, "--redis", s.URL)
	keys, now := renewed(10)
	end(p, keys)
	// A session that has ended or expired since SCAN found it is no failure.
	begin(t, sealed, first, "{}")
	if err := p.endThese([]string{now, second, first}); err != nil {
		t.Error(err)
	}
	if err := p.failed(); !slices.Equal(p.ended, []string{now, first}) || err != nil || stderr.Len() > 0 {
		t.Errorf("%q were ended, want %s; %v, %s", p.ended, now, err, stderr)
	}

	p, stderr = purging(t, opened(t, s.URL, store.Options{}), "--redis", s.URL)
	keys, _ = renewed(20)
	end(p, keys)
	if err := p.failed(); len(p.ended) > 0 || !errors.Is(err, errFound) {
		t.Errorf("without the key: %q were ended, %v", p.ended, err)
	}
	contains(t, stderr.String(), "1 ID was replaced meanwhile by one that is not known; its session may be alive; run it again with all keys: name the file of the keys by --keys-file")

	// SCAN finds an ID that the session had when end --all began: the keys are not needed.
	p, stderr = purging(t, opened(t, s.URL, store.Options{}), "--redis", s.URL)
	keys, now = renewed(30)
	for _, key := range keys[:1] {
		s.Do(t, "PEXPIRE", key, (30 * time.Second).Milliseconds())
	}
	end(p, append(keys, keyOf(now)))
	if err := p.failed(); !slices.Equal(p.ended, []string{now}) || err != nil || stderr.Len() > 0 {
		t.Errorf("%q were ended, want %s; %v, %s", p.ended, now, err, stderr)
	}
}

// The JSON of a run that was interrupted does not look as if all sessions were ended.
func TestEndOfAllInterrupted(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	p, _ := purging(t, opened(t, s.URL, store.Options{}), "--redis", s.URL, "--json")
	p.ended, p.away = []string{first}, []away{}
	for err, want := range map[error]string{
		errInterrupted: `{"ended":["` + first + `"],"away":[],"complete":false}` + "\n",
		nil:            `{"ended":["` + first + `"],"away":[],"complete":true}` + "\n",
	} {
		var stdout strings.Builder
		p.out.Writer = bufio.NewWriter(&stdout)
		if failed := errors.Join(p.print(err), p.out.Flush()); failed != nil || stdout.String() != want {
			t.Errorf("%v: %v, %s", err, failed, stdout.String())
		}
	}
}

// Without the right to ask for the age of an old ID, end --all cannot tell which IDs are new. So it fails.
func TestEndOfAllWithoutPTTL(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	s.Do(t, "ACL", "SETUSER", "ops", "on", ">pw", "~*", "&*", "+@all", "-pttl")
	fails(t, call(t, "redis://ops:pw@"+s.Addr, "end", "--all"), exitError, "NOPERM", "pttl")
}

// A long sweep may miss a session that gets a new ID, since the old ID does not tell the new one any more. So end --all
// sweeps again until a sweep was short. If none is, it says so, and fails.
func TestEndOfAllThatTakesLong(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st := opened(t, s.URL, store.Options{})
	for _, long := range []int{0, 1, maxPasses - 1, maxPasses} {
		var all []string
		p, stderr := purging(t, st, "--redis", s.URL)
		passes := 0
		err := p.passes(func(n *node) error {
			all = append(all, id(10*long+passes)) // the sweep before has missed it
			begin(t, st, all[passes], "{}")
			if err := p.sweep(n); err != nil {
				return err
			}
			if passes++; passes <= long {
				p.begun = p.begun.Add(-tombstoneTime)
			}
			return nil
		})
		if err != nil || passes != min(long+1, maxPasses) || !slices.Equal(p.ended, all) {
			t.Errorf("after %d long sweeps: %v; %d sweeps have ended %q, want %q", long, err, passes, p.ended, all)
		}
		failed := p.failed()
		if want := long == maxPasses; errors.Is(failed, errFound) != want || strings.Contains(stderr.String(), "may be alive") != want {
			t.Errorf("after %d long sweeps: %v, %s", long, failed, stderr)
		}
	}
}

// If slots move to a master that was looked at already, end --all looks again, and counts them all. If they move each time, it
// says so, and fails. What counts meanwhile says so, too.
func TestEndOfAllWhileSlotsMove(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 2, 0)
	st := openedOn(t, c)
	all := guests(t, st, 12)
	url := "redis://" + c.Nodes[0].Addr
	p, stderr := purging(t, st, "--redis", url)
	// behind moves the slots of all sessions to the master that was swept.
	behind := func(n *node) {
		from := otherMaster(c, n.address)
		var slots []int
		for _, id := range all {
			if slot := c.Slot(t, keyOf(id)); c.Owner(t, slot) == from && !slices.Contains(slots, slot) {
				slots = append(slots, slot)
			}
		}
		c.MoveAll(t, slots, from, otherMaster(c, from.Addr))
	}
	sweeps := 0
	err := p.passes(func(n *node) error {
		err := p.sweep(n)
		if sweeps++; sweeps == 1 {
			behind(n)
		}
		return err
	})
	slices.Sort(p.ended)
	if failed := p.failed(); err != nil || failed != nil || sweeps != 4 || !slices.Equal(slices.Compact(p.ended), slices.Sorted(slices.Values(all))) {
		t.Errorf("%v, %v: after %d sweeps %q were ended: %s", err, failed, sweeps, p.ended, stderr)
	}

	p, stderr = purging(t, st, "--redis", url)
	err = p.passes(func(*node) error {
		c.MoveAll(t, c.SlotsOf(t, c.Nodes[0])[:1], c.Nodes[0], c.Nodes[1])
		return nil
	})
	if failed := p.failed(); err != nil || !errors.Is(failed, errFound) || !strings.Contains(stderr.String(), "slots moved between masters during the last of 5 looks") {
		t.Errorf("%v, %v: %s", err, failed, stderr)
	}

	login(t, st, "ann", "", 1)
	slot := c.Slot(t, keyOf(all[0]))
	move := c.BeginMove(t, slot, otherMaster(c, c.Owner(t, slot).Addr))
	for _, args := range [][]string{{"stats"}, {"users"}, {"locks"}} {
		r := call(t, url, args...)
		contains(t, r.stderr, "slots moved between masters meanwhile, so these numbers may be too high or too low")
		contains(t, call(t, url, append(args, "--json")...).stdout, `"slots_moved":true`)
	}
	c.FinishMove(t, move)
	for _, args := range [][]string{{"stats"}, {"users"}, {"locks"}} {
		contains(t, must(t, url, append(args, "--json")...), `"slots_moved":false`)
	}

	// A new node takes all slots of a master.
	p, stderr = purging(t, st, "--redis", url)
	fresh := c.Add(t)
	sweeps = 0
	err = p.passes(func(n *node) error {
		err := p.sweep(n)
		if sweeps++; sweeps == 1 {
			from := otherMaster(c, n.address)
			c.MoveAll(t, c.SlotsOf(t, from), from, fresh)
		}
		return err
	})
	if err != nil || sweeps < 4 {
		t.Errorf("%v after %d sweeps: %s", err, sweeps, stderr)
	}
}

// otherMaster returns the first or the second master of a cluster: the one without this address.
func otherMaster(c *redistest.Cluster, address string) *redistest.Server {
	if address == c.Nodes[0].Addr {
		return c.Nodes[1]
	}
	return c.Nodes[0]
}

// If a master of a cluster is away, the sessions of the others are ended, and end --all fails. If a session has got a new
// ID on the master that is away, end --all says so of that one, and ends the others of the master that has the old ID.
func TestEndOfAllWhileAMasterIsAway(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	st := openedOn(t, c)
	const n = 60
	all := guests(t, st, n)
	lost, slots := 0, c.SlotsOf(t, c.Nodes[2])
	for _, id := range all {
		if slices.Contains(slots, c.Slot(t, "{"+id+"}")) {
			lost++
		}
	}
	here := func(id string) bool { return !slices.Contains(slots, c.Slot(t, "{"+id+"}")) }
	from, to := slices.IndexFunc(all, here), n
	for here(id(to)) {
		to++
	}
	if err := hold(t, st, all[from], "").Renew(t.Context(), id(to), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	url := "redis://" + c.Nodes[0].Addr
	node := c.Nodes[2].Addr
	holder, old := c.Owner(t, c.Slot(t, keyOf(all[from]))), keyOf(all[from])
	holder.Do(t, "PEXPIRE", old, (2 * tombstoneTime).Milliseconds()) // as if it had been renewed while end --all runs
	c.Nodes[2].Stop(t)
	r := call(t, url, "end", "--all")
	want := result{fmt.Sprintf("%s  away: connection refused\n%d sessions ended\n", node, n-lost-1),
		"latchkey: 1 session got a new ID on a master that is away, and may be alive\n", exitError}
	if r != want || lost == 0 {
		t.Errorf("%+v, want %+v", r, want)
	}
	holder.Do(t, "PEXPIRE", old, (tombstoneTime / 2).Milliseconds()) // that was before
	r = call(t, url, "end", "--all", "--json")
	if want := `{"ended":[],"away":[{"address":"` + node + `","why":"connection refused"}],"complete":false}` + "\n"; r != (result{want, "", exitError}) {
		t.Errorf("%+v, want %s", r, want)
	}
}

// A key that a slot has left behind when it went to another master is no session of its node. The others of this node
// are ended.
func TestEndOfAllMeetsAKeyLeftBehind(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 2, 0, "--cluster-require-full-coverage", "no")
	const n = 20
	all := guests(t, openedOn(t, c), n)
	slot := c.Slot(t, keyOf(all[0]))
	old := c.Owner(t, slot)
	now := c.Nodes[0]
	if now == old {
		now = c.Nodes[1]
	}
	old.Do(t, "CLUSTER", "DELSLOTS", slot)
	now.Do(t, "CLUSTER", "DELSLOTS", slot)
	now.Do(t, "CLUSTER", "ADDSLOTS", slot)
	old.Do(t, "CLUSTER", "SETSLOT", slot, "NODE", now.Do(t, "CLUSTER", "MYID"))
	if r := call(t, "redis://"+old.Addr, "end", "--all"); r != (result{fmt.Sprintf("%d sessions ended\n", n-1), "", exitOK}) {
		t.Errorf("%+v", r)
	}
}

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// During a failover no report goes dark, and none counts a session twice or leaves one out in silence: the master
// that is away is named until its replica has taken over, and from then on all sessions are there again, also for a
// URL that names the dead master first.
func TestFailover(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1)
	st := openedOn(t, c)
	const n = 30
	for i := range n {
		begin(t, st, id(i), "{}")
	}
	old, heir := c.Nodes[1], c.ReplicaOf(t, c.Nodes[1])
	url := fmt.Sprintf("redis://%s?addr=%s&addr=%s", old.Addr, c.Nodes[0].Addr, heir.Addr)
	counts := func() report { return decoded[report](t, url, "stats") }
	if got := counts(); got.Sessions != n || len(got.Masters) != 3 {
		t.Fatalf("before: %+v", got.tally)
	}
	redistest.Eventually(t, "the replica has all", func() bool {
		return len(heir.Keys(t)) == len(old.Keys(t))
	})

	old.Pause(t) // a killed one may not start again: Valkey 8.0 sometimes cannot read the configuration that it has saved
	var got report
	r := call(t, url, "stats", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != exitError {
		t.Fatalf("%v: %+v", err, r)
	}
	if gone := []away{{old.Addr, "no reply within 2s"}}; !slices.Equal(got.Away, gone) || got.Sessions == 0 || got.Sessions >= n || len(got.Masters) != 2 {
		t.Errorf("while it is away: %+v", got)
	}
	noFix(t, url)

	heir.Do(t, "CLUSTER", "FAILOVER", "TAKEOVER")
	c.AwaitMaster(t, heir)
	if got := counts(); got.Sessions != n || len(got.Masters) != 3 || !slices.ContainsFunc(got.Masters, func(m *tally) bool { return m.Address == heir.Addr }) {
		t.Errorf("just promoted: %+v", got)
	}
	noFix(t, url)

	// The old master comes back, believes for a moment that it is the master, and may say CLUSTERDOWN.
	old.Resume(t)
	redistest.Eventually(t, "all is counted again", func() bool {
		var got report
		r := call(t, url, "stats", "--json")
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
			t.Fatalf("%v: %+v", err, r)
		}
		if got.Sessions != n && len(got.Away) == 0 {
			t.Errorf("%d sessions, and no word on the others: %+v", got.Sessions, got)
		}
		return got.Sessions == n && r.code == exitOK
	})
	noFix(t, url)
}

// noFix checks that doctor does not advise what redis-cli refuses during a failover.
func noFix(t *testing.T, url string) {
	t.Helper()
	if r := call(t, url, "doctor"); strings.Contains(r.stdout, "--cluster fix") || r.stdout == "" {
		t.Errorf("doctor: %+v", r)
	}
}

// A master that is demoted while it is read has redirected some of the reads, so it counts as away.
func TestDemotedMeanwhile(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 1, 1)
	j := connected(t, "stats", "redis://"+c.Nodes[0].Addr)
	reads := 0
	_, err := j.lookAtAll(func(n *node, _ func(int)) error {
		reads++
		c.Failover(t, c.Nodes[1])
		redistest.Eventually(t, "it is demoted", func() bool { return !c.Nodes[0].IsMaster(t) })
		return nil
	})
	if reads != 1 || err == nil || !strings.Contains(err.Error(), errDemoted.Error()) {
		t.Errorf("%d reads: %v", reads, err)
	}
	gone, err := j.lookAtAll(func(n *node, _ func(int)) error {
		if n.address != c.Nodes[1].Addr {
			t.Errorf("the master is %s", n.address)
		}
		return nil
	})
	if len(gone) != 0 || err != nil {
		t.Errorf("away: %v, %v", gone, err)
	}
}

// The newest view counts: of two that know all slots, the one with the latest claim.
func TestNewestView(t *testing.T) {
	t.Parallel()
	all := []share{{0, lease.Slots - 1}}
	stale := view{lines: []clusterLine{{address: "old:1", master: true, shares: all, epoch: 3}}}
	fresh := view{lines: []clusterLine{{address: "new:1", master: true, shares: all, epoch: 4}, {address: "old:1", epoch: 3}}}
	alone := view{lines: []clusterLine{{address: "reset:1", master: true, epoch: 9}}}
	for _, views := range []map[string]view{{"a": stale, "b": fresh, "c": alone}, {"a": fresh, "b": alone, "c": stale}} {
		if got := newest(views); len(got) != 2 || got[0].address != "new:1" {
			t.Errorf("%+v", got)
		}
	}
}

// For each state of the cluster the advice fits: slots that belong to no node are mended by redis-cli, which refuses
// while a master is away, and a failover ends by itself.
func TestSlotsInAFailover(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state, assigned, fail string
		away                  []string
		level, want           string
		fix                   bool
	}{
		{"ok", "16384", "0", nil, fine, "all slots are served", false},
		{"fail", "16384", "0", nil, wrong, "a failover is under way: wait some seconds, and run doctor again", false},
		{"fail", "16384", "5461", nil, wrong, "wait some seconds", false},
		{"fail", "16384", "5461", []string{"a:1"}, wrong, "a:1 is away: bring it back, unless a replica takes over", false},
		{"ok", "10923", "0", []string{"a:1", "b:1"}, wrong, "a:1, b:1 are away: bring them back, unless a replica takes over", false},
		{"fail", "16383", "0", nil, wrong, "1 of 16384 slots belong to no node", true},
	} {
		d := &diagnosis{job: &job{redis: &redis{}}, node: &node{address: "c:1"}, entry: "c:1", away: c.away, hope: "unless a replica takes over",
			info: map[string]string{"cluster_state": c.state, "cluster_slots_assigned": c.assigned, "cluster_slots_fail": "0", "cluster_slots_pfail": c.fail}}
		d.slots()
		if len(d.findings) != 1 || d.findings[0].Level != c.level || (len(d.findings[0].Do) > 0) != c.fix {
			t.Errorf("%+v: %+v", c, d.findings)
		}
		contains(t, d.findings[0].Text, c.want)
	}
}

// A replica takes over from its own master only, not if it never does, and not without the votes of most masters.
func TestHopeForMastersThatAreAway(t *testing.T) {
	t.Parallel()
	var five []*node
	for _, id := range []string{"one", "two", "three", "four", "five"} {
		five = append(five, &node{address: id, line: clusterLine{id: id, master: true}})
	}
	replica := func(of string) *node { return &node{replica: true, line: clusterLine{of: of}} }
	dead, never := replica("one"), replica("one")
	dead.err, never.line.noFailover = errDemoted, true
	const (
		hope       = "unless a replica takes over"
		none       = "since no replica replies"
		some       = "since not each of them"
		noMajority = "since no replica can take over by itself while half"
	)
	for _, c := range []struct {
		away              []string
		masters, replicas []*node
		want              string
	}{
		{[]string{"one"}, five, []*node{replica("one")}, hope},
		{[]string{"one"}, five, []*node{replica("two")}, none},
		{[]string{"one"}, five, []*node{dead, never}, none},
		{[]string{"one"}, five, nil, none},
		{[]string{"one", "two"}, five, []*node{replica("one"), replica("two")}, hope},
		{[]string{"one", "two"}, five, []*node{replica("two")}, some},
		{[]string{"one", "two", "three"}, five, []*node{replica("one"), replica("two"), replica("three")}, noMajority},
		{[]string{"one"}, five[:2], []*node{replica("one")}, noMajority},
	} {
		if got := hopeFor(c.away, slices.Concat(c.masters, c.replicas)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %s, want %s", c, got, c.want)
		}
	}
}

// The command that mends a cluster logs in as this program does, without the password itself.
func TestClusterFixLogsIn(t *testing.T) {
	t.Parallel()
	r := &redis{}
	r.option.Password, r.option.Username, r.option.TLSConfig = "secret", "oper", new(tls.Config)
	d := &diagnosis{job: &job{redis: r}, entry: "c:1"}
	if got, want := d.clusterFix(), "REDISCLI_AUTH=PASSWORD redis-cli --cluster fix c:1 --user oper --tls"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A failover is no move of slots, whichever replica takes over.
func TestAFailoverMovesNoSlots(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1)
	p, _ := purging(t, openedOn(t, c), "--redis", "redis://"+c.Nodes[0].Addr)
	masters, err := p.redis.masters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Failover(t, c.Nodes[3])
	redistest.Eventually(t, "the old master knows it", func() bool { return !c.Nodes[0].IsMaster(t) })
	if p.redis.slotsMoved(t.Context(), masters, nil) {
		t.Error("slots have moved")
	}
	c.Move(t, c.SlotsOf(t, c.Nodes[1])[0], c.Nodes[2])
	if !p.redis.slotsMoved(t.Context(), masters, nil) {
		t.Error("no slot has moved")
	}
}

// If the master that the Sentinels name replies after all, that is another one, or it has been away: the error says so.
func TestErrorOfAMasterThatRepliesAgain(t *testing.T) {
	t.Parallel()
	master := redistest.Real(t)
	o, err := find("stats").parse([]string{"--redis", sentinelsURL(redistest.Sentinel(t, master, 1))}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	r, err := connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.client.Close)
	got := r.explainedBehind(t.Context(), context.DeadlineExceeded).Error()
	contains(t, got, master.Addr, "; now it replies, perhaps after a failover: try again")
}

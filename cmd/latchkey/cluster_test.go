package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store/rueidisstore"
	"github.com/redis/rueidis"
)

// On a cluster all commands see the sessions of all masters, for any node in the URL. If a master is
// unavailable, so are its sessions: doctor names the master, and the sessions of the others are shown.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	url := "redis://" + c.Nodes[1].Addr
	st, err := rueidisstore.Open(rueidis.ClientOption{InitAddress: []string{c.Nodes[0].Addr}}, patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	const n = 30
	var holds []*records.Hold
	for i := range n {
		begin(t, st, id(i), "{}")
		holds = append(holds, hold(t, st, id(i), fmt.Sprint("POST /", i)))
		begin(t, st, strings.Repeat("A", 19)+fmt.Sprintf("%02dA", i), `{"visits":3}`)
	}
	held := decoded[look](t, url, "locks").Locks
	if len(held) != n || !slices.ContainsFunc(held, func(h holder) bool { return h.Session == id(7) && h.Request == "POST /7" }) {
		t.Errorf("%d are held: %+v", len(held), held)
	}
	got := decoded[report](t, url+"?addr=127.0.0.1:1", "stats")
	if got.Sessions != 2*n || got.Held != n || len(got.Masters) != 3 {
		t.Errorf("%+v", got)
	}
	for _, m := range got.Masters {
		if m.Sessions == 0 || m.Sessions > n+n/2 {
			t.Errorf("%s has %d of %d sessions", m.Address, m.Sessions, 2*n)
		}
	}
	contains(t, must(t, url, "stats"), c.Nodes[0].Addr, c.Nodes[1].Addr, c.Nodes[2].Addr, "\nall ", "60")
	for i := range n {
		contains(t, must(t, url, "show", id(i), "--values"), fmt.Sprintf(" POST /%d for ", i))
	}
	contains(t, must(t, url, "end", id(3)), "1 session ended")
	var mine []string
	for i := range 5 {
		mine = append(mine, login(t, st, "ann", "", i))
	}
	if found := ids(decoded[[]device](t, url, "list", "--user", "ann")); !slices.Equal(found, mine) {
		t.Errorf("list: %v", found)
	}
	contains(t, must(t, url, "end", "--user", "ann", "--except", mine[0]), "4 sessions ended")
	contains(t, must(t, url, "show", mine[0]), "user       ann")
	rightsSuffice(t, c.Nodes, st)

	slots, shown := c.SlotsOf(t, c.Nodes[1]), ""
	for i := 0; shown == ""; i++ {
		if slices.Contains(slots, c.Slot(t, "{"+id(i)+"}")) {
			shown = id(i)
		}
	}
	for _, h := range holds {
		h.Release(t.Context())
	}
	c.Nodes[0].Stop(t) // it has the first slot
	gone := []away{{c.Nodes[0].Addr, "connection refused"}}
	var counted report
	r := call(t, url, "stats", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &counted); err != nil || r.code != exitError {
		t.Errorf("%v: %+v", err, r)
	}
	if !slices.Equal(counted.Away, gone) || len(counted.Masters) != 2 || counted.Sessions == 0 || counted.Sessions >= 2*n {
		t.Errorf("%+v", counted)
	}
	for _, command := range []string{"stats", "locks"} {
		r := call(t, url, command)
		contains(t, r.stdout, "\n"+c.Nodes[0].Addr+"  away: connection refused\n")
		if r.code != exitError || r.stderr != "" {
			t.Errorf("%s: %+v", command, r)
		}
	}
	finds(t, diagnosed(t, url), "node", wrong, "connection refused: start it")
	contains(t, must(t, url, "show", shown), shown)
}

// On a cluster doctor checks each node, and whether the others would suffer from the loss of one.
func TestDoctorOnACluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 2, 1)
	url := "redis://" + c.Nodes[0].Addr
	found := diagnosed(t, url)
	if n := len(found["version"]); n != 4 {
		t.Errorf("%d nodes were looked at", n)
	}
	finds(t, found, "cluster-require-full-coverage", wrong, "is yes: set it to no")
	finds(t, found, "cluster-allow-reads-when-down", fine)
	finds(t, found, "cluster_state", fine)
	finds(t, found, "role", fine)
	finds(t, found, "min-replicas-to-write", note, "add a second, and then set it to 1")
	for _, f := range found["min-replicas-to-write"] {
		if f.Level == wrong || f.Level == note && !slices.Contains([]string{c.Nodes[0].Addr, c.Nodes[1].Addr}, f.Node) {
			t.Errorf("with one replica for each master: %+v", f)
		}
	}
	if found["slots"] != nil {
		t.Errorf("%+v", found["slots"])
	}
	for _, n := range c.Nodes {
		n.Do(t, "CONFIG", "SET", "cluster-require-full-coverage", "no", "cluster-allow-reads-when-down", "yes", "min-replicas-to-write", "1")
	}
	slot := c.Nodes[0].Do(t, "CLUSTER", "KEYSLOT", "latchkey:{moved}")
	if slot.(int64) >= redistest.Slots/2 {
		slot = int64(1)
	}
	c.Nodes[0].Do(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ID(t, c.Nodes[1]))
	found = diagnosed(t, url)
	finds(t, found, "cluster-require-full-coverage", fine)
	finds(t, found, "cluster-allow-reads-when-down", wrong, "set it to no")
	finds(t, found, "min-replicas-to-write", note, "add a second replica")
	finds(t, found, "slots", wrong, "1 slot is moving", "otherwise its sessions", "redis-cli --cluster fix")
	text := call(t, url, "doctor", "--verbose").stdout
	contains(t, text, "ok     all 4 nodes  version is ", "  1 slot is moving") // of Valkey a replica says so, too
	if text := call(t, url, "doctor").stdout; strings.Contains(text, "version is") || strings.Index(text, "\nwrong ") > strings.Index(text, "\nnote ") {
		t.Errorf("what is wrong does not come first, or what is ok is there: %s", text)
	}
	c.Nodes[0].Do(t, "CLUSTER", "DELSLOTS", "2")
	finds(t, diagnosed(t, url), "cluster_state", wrong, "1 of 16384 slots belong to no node", "redis-cli --cluster fix ")
}

// While a replica copies from a master that runs, doctor does not say to start that master.
func TestDoctorWhileAReplicaCopies(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 1, 0)
	master, replica := c.Nodes[0], c.Add(t)
	master.Do(t, "CONFIG", "SET", "repl-diskless-sync", "yes", "repl-diskless-sync-delay", "3600")
	c.Replicate(t, replica, master)
	redistest.Eventually(t, "it waits for a copy, and the master calls it a replica", func() bool {
		nodes := fmt.Sprintf("%s", master.Do(t, "CLUSTER", "NODES"))
		return strings.Contains(info(t, master), "state=wait_bgsave") && strings.Contains(nodes, " slave ")
	})
	found := diagnosed(t, "redis://"+master.Addr)
	finds(t, found, "replicas", wrong, "is not ready yet (wait_bgsave): wait until it has a copy")
	for _, f := range found["role"] {
		if f.Level != fine || f.Node == replica.Addr && f.Text != "it copies from its master "+master.Addr {
			t.Errorf("%+v", f)
		}
	}
	if len(found["role"]) != 2 {
		t.Errorf("%+v", found["role"])
	}
}

// The reply to CLUSTER NODES, with all forms of nodes.
func TestParseNodes(t *testing.T) {
	t.Parallel()
	const text = `07c37 127.0.0.1:30004@31004,host-4 slave,nofailover e7d1ee 0 1426238317239 4 connected
67ed2 127.0.0.1:30002@31002,,shard-id=x master - 0 1426238316232 2 connected 5461-10922 [77->-e7d1ee]
292f8 127.0.0.1:30003@31003 master,fail - 0 1426238318243 3 connected 10923 10925-16383
a0b1c :0@0 slave,noaddr 67ed2 0 0 0 disconnected

e7d1e 127.0.0.1:30001@31001 myself,master - 0 0 1 connected
b0b1c ::1:30005@31005 master - 0 0 1 connected
c0b1c :30006@31006 myself,master - 0 0 0 connected
`
	want := []clusterLine{
		{id: "07c37", address: "127.0.0.1:30004", named: "host-4:30004", of: "e7d1ee", noFailover: true, epoch: 4},
		{id: "67ed2", address: "127.0.0.1:30002", master: true, shares: []share{{5461, 10922}}, moving: 1, epoch: 2},
		{id: "292f8", address: "127.0.0.1:30003", master: true, shares: []share{{10923, 10923}, {10925, 16383}}, failed: true, epoch: 3},
		{id: "a0b1c", address: "asked:0", of: "67ed2", gone: true},
		{id: "e7d1e", address: "127.0.0.1:30001", self: true, master: true, epoch: 1},
		{id: "b0b1c", address: "[::1]:30005", master: true, epoch: 1},
		{id: "c0b1c", address: "asked:30006", self: true, master: true},
	}
	if got := parseNodes(text, "asked:6379"); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// A user who may not ask a node of a cluster for the others is told so: the sessions of one node are not all.
func TestAClusterWithTheRightsForOneServer(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 2, 0)
	for _, n := range c.Nodes {
		n.Do(t, "ACL", "SETUSER", "oper", "on", ">pw", "~*", "+@all", "-cluster")
	}
	for _, command := range [][]string{{"stats"}, {"users"}, {"locks"}, {"end", "--all"}} {
		fails(t, call(t, "redis://oper:pw@"+c.Nodes[0].Addr, command...), exitError, "this is a node of a cluster", "NOPERM")
	}
}

// A replica that does not hear its master has old sessions, or none.
func TestAReplicaWithoutItsMaster(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--replicaof", "127.0.0.1 1")
	for _, command := range [][]string{{"stats"}, {"users"}, {"locks"}, {"top", "--count", "1"}} {
		fails(t, call(t, s.URL, command...), exitError, "this is a replica", "use the address of the master, 127.0.0.1:1")
	}
}

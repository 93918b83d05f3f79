package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	redigo "github.com/gomodule/redigo/redis"
)

// diagnosed runs doctor, and returns its findings by check. The exit status must tell whether one is wrong.
func diagnosed(t testing.TB, url string, args ...string) map[string][]finding {
	t.Helper()
	r := call(t, url, append([]string{"doctor", "--json"}, args...)...)
	var all []finding
	if err := json.Unmarshal([]byte(r.stdout), &all); err != nil || r.stderr != "" {
		t.Fatalf("%v: %+v", err, r)
	}
	found, code := map[string][]finding{}, exitOK
	for _, f := range all {
		found[f.Check] = append(found[f.Check], f)
		if f.Level == wrong {
			code = exitError
		}
	}
	if r.code != code {
		t.Errorf("exit %d, want %d of %+v", r.code, code, all)
	}
	return found
}

// finds checks that a check has a finding that contains the words.
func finds(t testing.TB, found map[string][]finding, check, level string, words ...string) {
	t.Helper()
	for _, f := range found[check] {
		if f.Level == level {
			contains(t, strings.Join(append([]string{f.Text}, f.Do...), "\n"), words...)
			return
		}
	}
	t.Errorf("%s is not %s: %+v", check, level, found[check])
}

// A server that is set up as in the page passes all checks.
func TestDoctorIsContent(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory", "100mb")
	r := call(t, s.URL, "doctor", "-v")
	if r.code != exitOK || strings.Contains(r.stdout, wrong+" ") || r.stderr != "" {
		t.Errorf("%+v", r)
	}
	contains(t, r.stdout, "ok     version is ", "ok     maxmemory-policy is noeviction\n", "ok     appendonly is yes\n",
		"ok     appendfsync is always\n", "% of maxmemory\n", "ok     role is master\n", "note   it has no replica", "\n0 wrong, ")
	finds(t, diagnosed(t, s.URL), "clock", fine)
	finds(t, diagnosed(t, s.URL), "disk", fine)
}

// Each setting that differs from the page is a line that says what to set.
func TestDoctorFinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args  []string
		check string
		level string
		words []string
	}{
		{[]string{"--maxmemory-policy", "volatile-lru"}, "maxmemory-policy", wrong, []string{"is volatile-lru: set it to noeviction"}},
		{nil, "appendonly", wrong, []string{"is no: set it to yes"}},
		{nil, "maxmemory", note, []string{"is not set"}},
		{[]string{"--appendonly", "yes", "--appendfsync", "everysec"}, "appendfsync", note, []string{"is everysec: set it to always if"}},
		{[]string{"--appendonly", "yes", "--appendfsync", "no"}, "appendfsync", wrong, []string{"is no: set it to everysec, or to always"}},
		{[]string{"--min-replicas-to-write", "1"}, "min-replicas-to-write", wrong, []string{"there is no replica: writes are refused"}},
		{[]string{"--rename-command", "CONFIG", ""}, "min-replicas-to-write", note, []string{"CONFIG GET min-replicas-to-write is refused"}},
		{[]string{"--rename-command", "INFO", ""}, "info", wrong, []string{"INFO is refused"}},
		{[]string{"--rename-command", "TIME", ""}, "clock", note, []string{"TIME is refused"}},
		{[]string{"--rename-command", "EVALSHA", "", "--rename-command", "PTTL", ""}, "commands", wrong, []string{"pttl, evalsha", "requests fail"}},
		{[]string{"--rename-command", "ZCARD", ""}, "commands", wrong, []string{"zcard", "logins or logouts fail"}},
		{[]string{"--rename-command", "PUBLISH", ""}, "commands", note, []string{"publish", "poll instead"}},
		{[]string{"--rename-command", "ACL", ""}, "acl", note, []string{"rights are not checked"}},
	} {
		t.Run(c.check+" "+c.level, func(t *testing.T) {
			t.Parallel()
			finds(t, diagnosed(t, redistest.Real(t, c.args...).URL), c.check, c.level, c.words...)
		})
	}
}

// Events since the start count, too.
func TestDoctorFindsWhatHappened(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--maxmemory", "2mb", "--maxmemory-policy", "allkeys-lru", "--maxclients", "20")
	for i := range 300 {
		s.Do(t, "SET", fmt.Sprint(i), strings.Repeat("x", 10_000))
	}
	var conns []net.Conn
	for range 30 {
		conn, err := net.Dial("tcp", s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	redistest.Eventually(t, "some were refused", func() bool { return strings.Contains(info(t, s), "rejected_connections:1") })
	for _, conn := range conns {
		conn.Close()
	}
	redistest.Eventually(t, "there is room", func() bool { return strings.Contains(info(t, s), "connected_clients:1\r") })
	found := diagnosed(t, s.URL)
	finds(t, found, "evicted_keys", wrong, "set maxmemory-policy to noeviction")
	finds(t, found, "rejected_connections", note, "maxclients is 20", "limit of open files must allow them", "CONFIG RESETSTAT")
	if do := found["rejected_connections"][0].Do; len(do) != 1 { // it may have been raised since
		t.Errorf("with one connection of 20: %q", do)
	}
	s.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	found = diagnosed(t, s.URL)
	finds(t, found, "evicted_keys", note, "CONFIG RESETSTAT")
	finds(t, found, "maxmemory", wrong, "% of maxmemory: set maxmemory higher")
	for range 10 {
		conn, err := net.Dial("tcp", s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	redistest.Eventually(t, "there are ten more", func() bool { return strings.Contains(info(t, s), "connected_clients:11\r") })
	finds(t, diagnosed(t, s.URL), "rejected_connections", note, "CONFIG SET maxclients 40\nCONFIG RESETSTAT")
}

func info(t testing.TB, s *redistest.Server) string {
	return string(s.Do(t, "INFO").([]byte))
}

// With two replicas a write must need one. With one replica, that would refuse all writes while it is away. A replica
// is the wrong address.
func TestDoctorOnReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.Real(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Real(t, "--replicaof", host+" "+port)
	redistest.Eventually(t, "the replica is there", func() bool { return strings.Contains(info(t, master), "state=online") })
	found := diagnosed(t, master.URL)
	finds(t, found, "min-replicas-to-write", note,
		"is 0, and there is one replica: add a second, and then set it to 1; now")
	if do := found["min-replicas-to-write"][0].Do; len(do) > 0 {
		t.Errorf("with one replica: %q", do)
	}
	finds(t, found, "min-replicas-max-lag", fine)
	finds(t, found, "replicas", fine, "1 replica in time")
	found = diagnosed(t, replica.URL)
	finds(t, found, "role", wrong, "this is a replica: use the address of its master, "+master.Addr+", or Sentinel")
	if found["min-replicas-to-write"] != nil || found["min-replicas-max-lag"] != nil {
		t.Errorf("a replica is told how to be a master: %+v", found)
	}
	if text := call(t, replica.URL, "doctor").stdout; !strings.HasPrefix(text, "wrong  this is a replica: ") {
		t.Errorf("the cause does not come first: %s", text)
	}

	master.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1", "min-replicas-max-lag", "20")
	found = diagnosed(t, master.URL)
	finds(t, found, "min-replicas-to-write", note,
		"is 1, and there is one replica: while it is away, and after a failover, all writes are refused (NOREPLICAS)")
	finds(t, found, "min-replicas-max-lag", wrong, "is 20: set it to 10")
	master.Do(t, "CONFIG", "SET", "min-replicas-to-write", "2", "min-replicas-max-lag", "10")
	finds(t, diagnosed(t, master.URL), "min-replicas-to-write", wrong, "is 2, and there is only 1 replica")
	replicaOf(t, master)
	redistest.Eventually(t, "the second is there", func() bool {
		return strings.Count(info(t, master), "state=online") == 2
	})
	finds(t, diagnosed(t, master.URL), "min-replicas-to-write", fine)
	master.Do(t, "CONFIG", "SET", "min-replicas-to-write", "0")
	finds(t, diagnosed(t, master.URL), "min-replicas-to-write", wrong,
		"is 0: set it to 1", "CONFIG SET min-replicas-to-write 1")

	for _, args := range [][]string{{"end", first}, {"end", "--user", "ann"}, {"list", "--user", "ann"}} {
		fails(t, call(t, replica.URL, args...), exitError, "this is a replica: use the address of its master, "+master.Addr)
	}
	must(t, replica.URL, "locks")
	must(t, replica.URL, "stats")
	master.Stop(t)
	redistest.Eventually(t, "it has noticed", func() bool {
		return strings.Contains(info(t, replica), "master_link_status:down")
	})
	finds(t, diagnosed(t, replica.URL), "role", wrong,
		"this is a replica, and has no connection to its master "+master.Addr+": ", "or use the address of the new one")
}

// The rights that doctor checks are those in the page, for one server and for a cluster.
func TestDoctorKnowsTheRights(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "store", "REDIS.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(string(text), `\|`, "|")
	_, page, _ = strings.Cut(page, "\n## A user with the least rights")
	page, _, _ = strings.Cut(page, "\n## ")
	line := regexp.MustCompile(`(?m)^    ACL SETUSER .*$`).FindString(page)
	whole := slices.Concat(neededRights, readRights, userRights, notifyRights)
	for _, r := range whole {
		if !strings.Contains(line+" ", " "+r.rule+" ") {
			t.Errorf("%s is not in %q", r.rule, line)
		}
	}
	if n := strings.Count(line, " +"); n != len(whole) {
		t.Errorf("the page has %d rights, doctor %d", n, len(whole))
	}
	s := redistest.Real(t)
	s.Do(t, "ACL", wordsOf(strings.TrimPrefix(line, "    ACL "))...)
	if found := diagnosed(t, s.URL, "--acl-user", "latchkey")["acl"]; len(found) != 1 || found[0].Level != fine {
		t.Errorf("with the line of the page: %+v", found)
	}
	for _, all := range [][]right{readRights, userRights, notifyRights, selectRights, clusterRights, clusterNotifyRights} {
		for _, r := range all {
			if !regexp.MustCompile("(?m)^\\| `[^`]*" + regexp.QuoteMeta(r.rule) + "[ `]").MatchString(page) {
				t.Errorf("no row of the page begins with %s", r.rule)
			}
		}
	}
}

// A user that lacks rights is found, and so is a user that has too many.
func TestDoctorOnRights(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	allowed := func(name string, rules ...any) map[string][]finding {
		s.Do(t, "ACL", append([]any{"SETUSER", name, "reset", "on", ">pw"}, rules...)...)
		return diagnosed(t, s.URL, "--acl-user", name)
	}
	least := "~latchkey:* +ping +get +mget +getrange +set +del +pexpire +pttl +rename +time +eval +evalsha"
	users := " +zscore +zadd +zrem +zcard +zrange +zremrangebyscore"
	waking := " +publish +subscribe +pubsub|numsub &latchkey:wake:*"
	all := allowed("app", wordsOf(least+users+waking)...)["acl"]
	if len(all) != 1 || all[0].Level != fine {
		t.Errorf("%+v", all)
	}
	found := allowed("app", wordsOf(least)...)
	finds(t, found, "acl", fine, "the user app has the rights for sessions without logins")
	finds(t, found, "acl", note, "each Login fails", "ACL SETUSER app"+users)
	if len(found["acl"]) != 3 {
		t.Errorf("%+v", found["acl"])
	}
	found = allowed("app", wordsOf(strings.Replace(least, "+set +del", "", 1)+users+" +publish +subscribe +pubsub|numsub")...)
	finds(t, found, "acl", wrong, "the user app lacks rights", "ACL SETUSER app +set +del")
	finds(t, found, "acl", note, "cannot notify each other", "ACL SETUSER app &latchkey:wake:*")
	found = allowed("app", wordsOf(least+strings.Replace(users, " +zcard", "", 1)+waking)...)
	finds(t, found, "acl", wrong, "so logins or logouts fail", "ACL SETUSER app +zcard")
	found = allowed("app", wordsOf(strings.Replace(least, "+mget", "", 1)+users+waking)...)
	finds(t, found, "acl", note, "requests need more round trips", "ACL SETUSER app +mget")
	allowed("app", wordsOf(least+users+waking)...)
	finds(t, diagnosed(t, s.URL+"/1", "--acl-user", "app"), "acl", wrong, "ACL SETUSER app +select") // to connect to database 1
	found = allowed("app", wordsOf(strings.Replace(least, "latchkey", "other", 1))...)
	finds(t, found, "acl", wrong, "ACL SETUSER app ~latchkey:*")
	if slices.ContainsFunc(found["acl"], func(f finding) bool { return strings.Contains(f.Text, "round trips") }) {
		t.Errorf("a user who lacks all keys: %+v", found["acl"])
	}
	found = diagnosed(t, s.URL, "--acl-user", "app", "--prefix", "channel-app:")
	finds(t, found, "acl", wrong, "ACL SETUSER app ~channel-app:*")
	found = allowed("app", "~*", "&*", "+@all")
	finds(t, found, "acl", note, "may do more than is needed, such as FLUSHALL")
	finds(t, diagnosed(t, s.URL, "--acl-user", "nobody"), "acl", wrong, "there is no user nobody")
}

// If Redis cannot write to its disk, doctor says what comes of it. That is not always that writes are refused.
func TestDoctorOnADiskThatFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags    []string
		inTheWay string
		write    string
		finding  string
		level    string
		says     string
	}{
		{[]string{"--save", "3600 1"}, "dump.rdb", "BGSAVE", "rdb_last_bgsave_status", wrong, "otherwise writes are refused"},
		{[]string{"--save", ""}, "dump.rdb", "BGSAVE", "rdb_last_bgsave_status", note, "otherwise there is no new snapshot"},
		{[]string{"--save", "3600 1", "--stop-writes-on-bgsave-error", "no"}, "dump.rdb", "BGSAVE", "rdb_last_bgsave_status", note, "otherwise there is no new snapshot"},
		{[]string{"--appendonly", "yes"}, "appendonlydir/appendonly.aof.2.base.rdb", "BGREWRITEAOF", "aof_last_bgrewrite_status", wrong, "otherwise the log grows until the disk is full"},
	} {
		s := redistest.Real(t, c.flags...)
		dir, err := redigo.Strings(s.Do(t, "CONFIG", "GET", "dir"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir[1], c.inTheWay, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		s.Do(t, c.write)
		redistest.Eventually(t, c.finding, func() bool { return strings.Contains(info(t, s), c.finding+":err") })
		finds(t, diagnosed(t, s.URL), c.finding, c.level, c.says)
	}
}

func wordsOf(line string) (all []any) {
	for _, word := range strings.Fields(line) {
		all = append(all, word)
	}
	return all
}

// A node of a cluster that is at maxclients runs: nobody is told to start it.
func TestANodeAtMaxclients(t *testing.T) {
	t.Parallel()
	r := &redis{}
	err := r.explainedAt(errors.New("ERR max number of clients + cluster connections reached"), "a:1")
	d := &diagnosis{node: &node{redis: r, address: "a:1"}}
	if d.unreachable(err); !strings.Contains(d.findings[0].Text, "does not let this program in: ERR max") || strings.Contains(d.findings[0].Text, "start it") {
		t.Errorf("%+v", d.findings)
	}
}

// Two clocks may differ by as much as it is uncertain when Redis replied.
func TestDrift(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]string{2200 * time.Millisecond: fine, -2200 * time.Millisecond: fine, 2300 * time.Millisecond: wrong, -time.Hour: wrong} {
		d := &diagnosis{node: &node{}}
		if d.drift(ahead, 1200*time.Millisecond); d.findings[0].Level != want {
			t.Errorf("%v ahead: %+v", ahead, d.findings)
		}
	}
}

// The rights on the page are enough for all commands, on one server and on a cluster: see TestCluster.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--appendonly", "yes", "--maxmemory", "100mb")
	rightsSuffice(t, []*redistest.Server{s}, opened(t, s.URL, store.Options{}))
	must(t, "redis://operator:pw@"+s.Addr, "doctor")
}

func rightsSuffice(t *testing.T, servers []*redistest.Server, st *store.Store) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := func(expression string) (all []any) {
		line := regexp.MustCompile(expression).FindStringSubmatch(string(page))
		if line == nil {
			t.Fatalf("the page has no %s", expression)
		}
		for _, word := range strings.Fields(line[1]) {
			all = append(all, strings.ReplaceAll(strings.Trim(word, "`,"), "PASSWORD", "pw"))
		}
		return all
	}
	allowed := func(rules []any) {
		for _, s := range servers {
			s.Do(t, "ACL", append([]any{"SETUSER"}, rules...)...)
		}
	}
	allowed(rules(`(?m)^    ACL SETUSER (.*)$`))
	url := "redis://operator:pw@" + servers[0].Addr
	isCluster := len(servers) > 1
	if isCluster {
		allowed(append([]any{"operator"}, rules("(?m)^On a cluster the user needs (`.*`) as well")...))
	}
	for _, s := range servers {
		s.Do(t, "ACL", "LOG", "RESET")
	}
	begin(t, st, second, "{}")
	hold(t, st, second, "")
	one, two := login(t, st, "eve", "", 1), login(t, st, "eve", "", 2)
	for _, args := range [][]string{{"list", "--user", "eve"}, {"show", second, "--values"}, {"show", one, "--values"},
		{"list", one, second}, {"users"}, {"locks"}, {"top", "--count", "1"}, {"stats"}, {"end", second}, {"end", one}, {"end", "--user", "eve"}} {
		must(t, url, args...)
	}
	fails(t, call(t, url, "show", two), exitError, "it was ended")
	if !isCluster { // others have sessions there
		begin(t, st, first, "{}")
		contains(t, must(t, url, "end", "--all"), "1 session ended")
	}
	found := diagnosed(t, url)
	if finds(t, found, "acl", note, "the user operator", "--acl-user"); len(found["acl"]) != len(servers) {
		t.Errorf("of rights: %+v", found["acl"])
	}
	removed := []any{"operator"}
	for _, rule := range rules("(?s)may only look, leave out (`[^`]*`)") {
		removed = append(removed, strings.Replace(rule.(string), "+", "-", 1))
	}
	allowed(removed)
	login(t, st, "eve", "", 3)
	for _, args := range [][]string{{"list", "--user", "eve"}, {"users"}, {"locks"}, {"top", "--count", "1"}, {"stats"}} {
		must(t, url, args...)
	}
	for _, s := range servers {
		for _, refused := range s.Do(t, "ACL", "LOG").([]any) {
			text := fmt.Sprintf("%s", refused)
			// Rueidis does not need these commands, which ask for the cluster and set the client's name.
			if (isCluster || !strings.Contains(text, "cluster|s")) && !strings.Contains(text, "client|setinfo") {
				t.Errorf("refused: %s", text)
			}
		}
	}
}

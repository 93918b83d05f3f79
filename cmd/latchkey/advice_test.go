package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	redigo "github.com/gomodule/redigo/redis"
)

// A mistake is what doctor gives advice on.
type mistake struct {
	// words are in the advice, and in its text in the code.
	words string
	// make makes the mistake. follow does what the advice says, unless the advice has commands, which are run. It
	// may return other arguments for doctor, such as the right user. The URL may come before them, as in a shell.
	make func(t *testing.T) (url string, args []string, follow func(f finding) []string)
}

// If an operator does what doctor says, the line is gone. No advice in the code is left out, except notFollowed.
func TestAdviceWorks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var followed []string
	all := slices.Concat(mistakes, sentinelMistakes)
	t.Run("advice", func(t *testing.T) {
		for _, m := range all {
			t.Run(m.words, func(t *testing.T) {
				t.Parallel()
				for _, f := range m.mend(t) {
					mu.Lock()
					followed = append(followed, f.Text)
					mu.Unlock()
				}
			})
		}
	})
	if len(followed) < len(all) || t.Failed() {
		return // only some were chosen
	}
	formats := adviceInTheCode(t)
	if len(formats) < 40 {
		t.Errorf("there are only %d pieces of advice in the code", len(formats))
	}
	for _, format := range formats {
		if !slices.ContainsFunc(followed, form(format).MatchString) && !slices.ContainsFunc(notFollowed, func(words string) bool { return strings.Contains(format, words) }) {
			t.Errorf("no test has followed this advice: %q", format)
		}
	}
}

// notFollowed is the advice that a test cannot follow.
var notFollowed = []string{
	"use Redis 7.0 or later", // there is no older server
	"set both by NTP",        // it would change the machine's clock
	"loading is 1",           // waiting is all there is to do
	"though all slots are",   // it lasts for two seconds: see TestSlotsInAFailover
	"not replied to INFO",    // it takes half a minute
	"never replied to INFO",  // so does this
}

// form matches the texts that have a format.
func form(format string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	verb := regexp.MustCompile(`%(\[\d\])?[a-z]|%%`)
	for _, fixed := range verb.Split(format, -1) {
		b.WriteString(regexp.QuoteMeta(fixed) + "(?s:.*)")
	}
	return regexp.MustCompile(b.String())
}

// mend makes a mistake, runs doctor, does what the advice says, and runs doctor again.
func (m mistake) mend(t *testing.T) (given []finding) {
	t.Helper()
	url, args, follow := m.make(t)
	await(t, "the advice", func() bool {
		given, _ = advised(t, url, args, m.words)
		return len(given) > 0
	})
	var done []string
	for _, f := range given {
		if follow == nil && len(f.Do) == 0 {
			t.Fatalf("the advice has no command: %+v", f)
		}
		for _, command := range f.Do {
			if !strings.HasPrefix(command, shell) || !slices.Contains(done, command) { // once for the whole cluster
				obey(t, f.Node, command)
				done = append(done, command)
			}
		}
		if follow == nil {
			continue
		}
		if changed := follow(f); changed != nil {
			args = changed
			if at, found := strings.CutPrefix(changed[0], redisVariable+"="); found { // as in a shell
				url, args = at, changed[1:]
			}
		}
	}
	await(t, "the line is gone", func() bool {
		left, ran := advised(t, url, args, m.words)
		return ran && len(left) == 0
	})
	return given
}

// advised returns the advice that has some words, and whether doctor could say anything.
func advised(t *testing.T, url string, args []string, words string) (given []finding, ran bool) {
	t.Helper()
	r := call(t, url, append([]string{"doctor", "--json", "--timeout", "1s"}, args...)...)
	if r.stdout == "" {
		t.Logf("doctor: %s", r.stderr)
		return nil, false
	}
	var all []finding
	if err := json.Unmarshal([]byte(r.stdout), &all); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	return slices.DeleteFunc(all, func(f finding) bool { return f.Level == fine || !strings.Contains(f.Text, words) }), true
}

// await waits for what Redis does in its own time. It does not ask all the time: others need the machine.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(100 * time.Millisecond) { // between two tries
		if time.Since(begun) > time.Minute {
			t.Fatalf("never: %s", what)
		}
	}
}

// shell begins the commands that are for a shell. All others are for a node.
const shell = "redis-cli "

// obey runs a command as an operator would: in redis-cli on that node, or in a shell.
func obey(t *testing.T, node, command string) {
	t.Helper()
	t.Logf("%s: %s", node, command)
	if strings.HasPrefix(command, shell) {
		c := exec.Command("sh", "-c", command)
		c.Stdin = strings.NewReader("yes\n")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		return
	}
	order(t, node, wordsOf(command)...)
}

// order sends a command to a server or to a Sentinel.
func order(t *testing.T, address string, words ...any) {
	t.Helper()
	if _, err := redistest.AskSentinel(address, words[0].(string), words[1:]...); err != nil {
		t.Fatalf("%s: %q: %v", address, words, err)
	}
}

// adviceInTheCode returns the formats of all findings that are not always ok.
func adviceInTheCode(t *testing.T) (formats []string) {
	t.Helper()
	paths, err := filepath.Glob("doctor*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 3 {
				return true
			}
			say, ok := call.Fun.(*ast.SelectorExpr)
			level, named := call.Args[0].(*ast.Ident)
			if ok && named && say.Sel.Name == "say" && level.Name != "fine" {
				formats = append(formats, literal(call.Args[2]))
			}
			return true
		})
	}
	return formats
}

// literal returns the text of a literal, or of a sum of literals; of anything else "%s".
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	}
	return "%s"
}

// withFlags makes the mistake by a server's flags. The advice has the commands.
func withFlags(flags ...string) func(t *testing.T) (string, []string, func(finding) []string) {
	return func(t *testing.T) (string, []string, func(finding) []string) {
		return redistest.Real(t, flags...).URL, nil, nil
	}
}

// withRules makes the mistake by the rights of the user app, which doctor checks.
func withRules(rules string) func(t *testing.T) (string, []string, func(finding) []string) {
	return func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		s.Do(t, "ACL", wordsOf("SETUSER app on >pw "+rules)...)
		return s.URL, []string{"--acl-user", "app"}, nil
	}
}

// farFrom makes the way between doctor and the server long. The advice is to use a shorter one.
func farFrom(oneWay time.Duration) func(t *testing.T) (string, []string, func(finding) []string) {
	return func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		return "redis://" + redistest.NewDelay(t, s.Addr, oneWay), nil, func(finding) []string { return []string{"--redis", s.URL} }
	}
}

// asOperator logs in as an operator who lacks a right. The advice is to have it.
func asOperator(lacks string) func(t *testing.T) (string, []string, func(finding) []string) {
	return func(t *testing.T) (string, []string, func(finding) []string) {
		return operatorOf(t, redistest.Real(t), lacks)
	}
}

// asClusterOperator is asOperator on a cluster, of which one node lacks the right.
func asClusterOperator(lacks string) func(t *testing.T) (string, []string, func(finding) []string) {
	return func(t *testing.T) (string, []string, func(finding) []string) {
		c := redistest.NewCluster(t, 2, 0, "--cluster-require-full-coverage", "no")
		c.Nodes[1].Do(t, "ACL", wordsOf("SETUSER operator on >pw ~* &* +@all")...)
		return operatorOf(t, c.Nodes[0], lacks)
	}
}

func operatorOf(t *testing.T, s *redistest.Server, lacks string) (string, []string, func(finding) []string) {
	s.Do(t, "ACL", wordsOf("SETUSER operator on >pw ~* &* +@all -"+lacks)...)
	return "redis://operator:pw@" + s.Addr, nil, func(finding) []string {
		s.Do(t, "ACL", "SETUSER", "operator", "+"+lacks)
		return nil
	}
}

// replicated starts a master and its replica.
func replicated(t *testing.T, flags ...string) (master, replica *redistest.Server) {
	t.Helper()
	master = redistest.Real(t, append([]string{"--repl-diskless-sync-delay", "0"}, flags...)...)
	return master, replicaOf(t, master)
}

func replicaOf(t *testing.T, master *redistest.Server) *redistest.Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Real(t, "--replicaof", host+" "+port)
	redistest.Eventually(t, "the replica is there", func() bool { return strings.Contains(info(t, master), "state=online") })
	return replica
}

// withReplica makes the mistake on a master with a replica.
func withReplica(flags ...string) func(t *testing.T) (string, []string, func(finding) []string) {
	return func(t *testing.T) (string, []string, func(finding) []string) {
		master, _ := replicated(t, flags...)
		return master.URL, nil, nil
	}
}

// withReplicas makes the mistake on a master with two replicas.
func withReplicas() func(t *testing.T) (string, []string, func(finding) []string) {
	return func(t *testing.T) (string, []string, func(finding) []string) {
		master, _ := replicated(t)
		replicaOf(t, master)
		return master.URL, nil, nil
	}
}

const (
	forSessions = "~latchkey:* -@all +ping +get +mget +getrange +set +del +pexpire +pttl +rename +time +eval +evalsha"
	forLogins   = " +zscore +zadd +zrem +zcard +zrange +zremrangebyscore"
	forWaking   = " +publish +subscribe +pubsub|numsub &latchkey:wake:*"
)

var mistakes = []mistake{
	// Memory.
	{"set it to noeviction; otherwise locks", withFlags("--maxmemory-policy", "allkeys-lru")},
	{"maxmemory is not set", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		return s.URL, nil, func(finding) []string { s.Do(t, "CONFIG", "SET", "maxmemory", "100mb"); return nil }
	}},
	{"% of maxmemory: set maxmemory higher", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		s.Fill(t)
		return s.URL, nil, nil
	}},
	{"set maxmemory-policy to noeviction; some users", func(t *testing.T) (string, []string, func(finding) []string) {
		return evicting(t).URL, nil, nil
	}},
	{"CONFIG RESETSTAT sets it to 0", func(t *testing.T) (string, []string, func(finding) []string) {
		s := evicting(t)
		s.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
		return s.URL, nil, nil
	}},
	{"it must allow three connections", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t, "--maxclients", "20")
		var last net.Conn
		for range 30 {
			conn, err := net.Dial("tcp", s.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			last = conn
		}
		// Until Redis has refused the last connection, it may not have accepted the first.
		if refusal, err := io.ReadAll(last); !strings.Contains(string(refusal), "max number of clients") {
			t.Fatalf("%q, %v", refusal, err)
		}
		return s.URL, nil, nil
	}},
	// Disk.
	{"appendonly is no", withFlags()},
	{"set it to always if", withFlags("--appendonly", "yes")},
	{"set it to everysec, or to always", withFlags("--appendonly", "yes", "--appendfsync", "no")},
	{"free space on Redis's disk", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		dir, err := redigo.Strings(s.Do(t, "CONFIG", "GET", "dir"), nil)
		if err != nil {
			t.Fatal(err)
		}
		inTheWay := filepath.Join(dir[1], "dump.rdb", "x")
		if err := os.MkdirAll(inTheWay, 0o700); err != nil {
			t.Fatal(err)
		}
		s.Do(t, "BGSAVE")
		return s.URL, nil, func(f finding) []string {
			os.RemoveAll(filepath.Dir(inTheWay))
			redistest.Eventually(t, "the child has ended", func() bool { return strings.Contains(info(t, s), "rdb_bgsave_in_progress:0") })
			obey(t, f.Node, f.Do[0])
			return nil
		}
	}},
	// Replicas.
	{"use the address of its master", func(t *testing.T) (string, []string, func(finding) []string) {
		_, replica := replicated(t)
		return replica.URL, nil, func(f finding) []string {
			_, address, _ := strings.Cut(f.Text, "use the address of its master, ")
			address, _, _ = strings.Cut(address, ", or")
			return []string{"--redis", "redis://" + address}
		}
	}},
	{"and has no connection to its master", func(t *testing.T) (string, []string, func(finding) []string) {
		master, replica := replicated(t)
		master.Stop(t)
		return replica.URL, nil, func(finding) []string { master.Restart(t); return nil }
	}},
	{"it has no replica", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t, "--repl-diskless-sync-delay", "0")
		return s.URL, nil, func(finding) []string { replicaOf(t, s); return nil }
	}},
	{"add a replica, or set it to 0", withFlags("--min-replicas-to-write", "1")},
	{"is 0: set it to 1; otherwise a failover", withReplicas()},
	{"add a second, and then set it to 1", func(t *testing.T) (string, []string, func(finding) []string) {
		master, _ := replicated(t)
		return master.URL, nil, func(finding) []string {
			replicaOf(t, master)
			master.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
			return nil
		}
	}},
	{"are refused (NOREPLICAS): add a second", func(t *testing.T) (string, []string, func(finding) []string) {
		master, _ := replicated(t, "--min-replicas-to-write", "1")
		return master.URL, nil, func(finding) []string { replicaOf(t, master); return nil }
	}},
	{"add replicas, or set it to 1", withReplica("--min-replicas-to-write", "2")},
	{"otherwise a failover loses more", withReplica("--min-replicas-max-lag", "20")},
	{"replicas are in time", func(t *testing.T) (string, []string, func(finding) []string) {
		master, replica := replicated(t, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "1")
		replica.Pause(t)
		return master.URL, nil, func(finding) []string { replica.Resume(t); return nil }
	}},
	{"has not been heard for", func(t *testing.T) (string, []string, func(finding) []string) {
		master, replica := replicated(t)
		replica.Pause(t)
		return master.URL, nil, func(finding) []string { replica.Resume(t); return nil }
	}},
	{"wait until it has a copy", func(t *testing.T) (string, []string, func(finding) []string) {
		master := redistest.Real(t, "--repl-diskless-sync-delay", "3600")
		host, port, _ := net.SplitHostPort(master.Addr)
		redistest.Real(t, "--replicaof", host+" "+port)
		return master.URL, nil, func(finding) []string {
			master.Do(t, "CONFIG", "SET", "repl-diskless-sync-delay", "0") // so that the wait is short
			return nil
		}
	}},
	// Round trips.
	{"a round trip takes more than 20ms", farFrom(15 * time.Millisecond)},
	{"a round trip takes more than 200ms", farFrom(150 * time.Millisecond)},
	{"Something delays Redis", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t, "--enable-debug-command", "yes")
		stop := blocking(s, 300*time.Millisecond)
		t.Cleanup(stop)
		return s.URL, nil, func(f finding) []string {
			_, advice, _ := strings.Cut(f.Text, "at times: ")
			advice, _, _ = strings.Cut(advice, " shows")
			if shown := fmt.Sprintf("%s", s.Do(t, "SLOWLOG", wordsOf(strings.TrimPrefix(advice, "SLOWLOG "))...)); !strings.Contains(shown, "DEBUG SLEEP") {
				t.Errorf("%s: %s", advice, shown)
			}
			stop()
			return nil
		}
	}},
	// Rights.
	{"there is no user", func(t *testing.T) (string, []string, func(finding) []string) {
		return redistest.Real(t).URL, []string{"--acl-user", "app"}, nil
	}},
	{"the user app lacks rights", withRules("~other:* -@all +ping" + forLogins + forWaking)},
	{"lacks rights for logins", withRules(forSessions + forWaking)},
	{"so logins or logouts fail", withRules(forSessions + " +zadd" + forWaking)},
	{"the server does not know the command", func(t *testing.T) (string, []string, func(finding) []string) {
		without := redistest.Real(t, "--rename-command", "EVALSHA", "")
		return without.URL, nil, func(finding) []string { return []string{"--redis", redistest.Real(t).URL} } // its configuration has no such line
	}},
	{"requests need more round trips", withRules(forSessions + forLogins + forWaking + " -mget")},
	{"cannot notify each other", withRules(forSessions + forLogins)},
	{"poll instead", withRules(forSessions + forLogins + " &latchkey:wake:*")},
	{"is off: a program", withRules(forSessions + forLogins + forWaking + " off")},
	{"may do more than is needed", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		return s.URL, nil, func(finding) []string { return []string{"--acl-user", "latchkey"} }
	}},
	{"name the user of the program by --acl-user", func(t *testing.T) (string, []string, func(finding) []string) {
		s := redistest.Real(t)
		s.Do(t, "ACL", wordsOf("SETUSER operator on >pw ~* &* -@all +ping +info +config|get +time +acl|whoami +acl|dryrun")...)
		s.Do(t, "ACL", wordsOf("SETUSER app on >pw "+forSessions+forLogins+forWaking)...)
		return "redis://operator:pw@" + s.Addr, nil, func(finding) []string { return []string{"--acl-user", "app"} }
	}},
	{"INFO is refused", asOperator("info")},
	{"is not known: CONFIG GET", asOperator("config")},
	{"its clock is not checked", asOperator("time")},
	{"rights are not checked: ACL WHOAMI", asOperator("acl|whoami")},
	{"are not checked: ACL DRYRUN", asOperator("acl|dryrun")},
	// Cluster.
	{"otherwise a lost shard makes", func(t *testing.T) (string, []string, func(finding) []string) {
		return "redis://" + redistest.NewCluster(t, 2, 0).Nodes[0].Addr, nil, nil
	}},
	{"otherwise a node that is cut off", func(t *testing.T) (string, []string, func(finding) []string) {
		return "redis://" + redistest.NewCluster(t, 2, 0, "--cluster-allow-reads-when-down", "yes").Nodes[0].Addr, nil, nil
	}},
	{"its view of the cluster is not checked", asClusterOperator("cluster|info")},
	{"half-moved slots are not checked", asClusterOperator("cluster|nodes")},
	{"belong to no node", func(t *testing.T) (string, []string, func(finding) []string) {
		c := redistest.NewCluster(t, 3, 0)
		for _, n := range c.Nodes {
			n.Do(t, "CLUSTER", "DELSLOTS", "2")
		}
		return "redis://" + c.Nodes[0].Addr, nil, nil
	}},
	{"finish it; otherwise", func(t *testing.T) (string, []string, func(finding) []string) {
		c := redistest.NewCluster(t, 3, 0)
		c.BeginMove(t, 7, c.Nodes[1])
		return "redis://" + c.Nodes[0].Addr, nil, nil
	}},
	{"back first; then run doctor again", func(t *testing.T) (string, []string, func(finding) []string) {
		c := redistest.NewCluster(t, 3, 0)
		c.BeginMove(t, 7, c.Nodes[1])
		c.Nodes[2].Stop(t)
		return "redis://" + c.Nodes[0].Addr, nil, func(finding) []string { c.Nodes[2].Restart(t); return nil }
	}},
	{"bring it back, since no replica", func(t *testing.T) (string, []string, func(finding) []string) {
		c := redistest.NewCluster(t, 3, 0)
		c.Nodes[2].Stop(t)
		return "redis://" + c.Nodes[0].Addr, nil, func(finding) []string { c.Nodes[2].Restart(t); return nil }
	}},
	{"does not hear the masters", func(t *testing.T) (string, []string, func(finding) []string) {
		c := redistest.NewCluster(t, 3, 0, "--cluster-node-timeout", "1000")
		c.Partition(t, c.Nodes[2])
		return "redis://" + c.Nodes[0].Addr, nil, func(finding) []string { c.Heal(t); return nil }
	}},
	{"the node does not let this program in", func(t *testing.T) (string, []string, func(finding) []string) {
		c := redistest.NewCluster(t, 2, 0)
		c.Nodes[1].Do(t, "CONFIG", "SET", "requirepass", "hunter2")
		return "redis://" + c.Nodes[0].Addr, nil, func(finding) []string {
			order(t, c.Nodes[0].Addr, "CONFIG", "SET", "requirepass", "hunter2")
			return []string{"--password-file", file(t, "hunter2")}
		}
	}},
	{"see whether it is stopped", func(t *testing.T) (string, []string, func(finding) []string) {
		c := redistest.NewCluster(t, 3, 0)
		c.Nodes[2].Pause(t)
		return "redis://" + c.Nodes[0].Addr, nil, func(finding) []string { c.Nodes[2].Resume(t); return nil }
	}},
	{"connection refused: start it", func(t *testing.T) (string, []string, func(finding) []string) {
		c := redistest.NewCluster(t, 2, 0)
		c.Nodes[1].Stop(t)
		return "redis://" + c.Nodes[0].Addr, nil, func(finding) []string { c.Nodes[1].Restart(t); return nil }
	}},
	{"gone for good, run CLUSTER FORGET", func(t *testing.T) (string, []string, func(finding) []string) {
		c := redistest.NewCluster(t, 1, 2)
		c.Nodes[2].Stop(t)
		return "redis://" + c.Nodes[0].Addr, nil, func(f finding) []string {
			_, id, _ := strings.Cut(f.Text, "CLUSTER FORGET ")
			for _, n := range c.Nodes[:2] {
				order(t, n.Addr, "CLUSTER", "FORGET", strings.Fields(id)[0])
			}
			return nil
		}
	}},
	{"never takes over, since its cluster-replica-no-failover", func(t *testing.T) (string, []string, func(finding) []string) {
		c := redistest.NewCluster(t, 1, 1)
		c.Nodes[1].Do(t, "CONFIG", "SET", "cluster-replica-no-failover", "yes")
		return "redis://" + c.Nodes[0].Addr, nil, nil
	}},
	{"replica without a connection", func(t *testing.T) (string, []string, func(finding) []string) {
		c := redistest.NewCluster(t, 2, 1)
		c.Nodes[1].Stop(t)
		return "redis://" + c.Nodes[0].Addr, nil, func(finding) []string { c.Nodes[1].Restart(t); return nil }
	}},
}

// blocking is a program that blocks Redis half of the time.
func blocking(s *redistest.Server, each time.Duration) (stop func()) {
	ended, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-ended:
				return
			case <-time.After(each):
				_, _ = redistest.AskSentinel(s.Addr, "DEBUG", "SLEEP", each.Seconds())
			}
		}
	}()
	return sync.OnceFunc(func() { close(ended); <-over })
}

// evicting starts a server that has evicted keys.
func evicting(t *testing.T) *redistest.Server {
	t.Helper()
	s := redistest.Real(t, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru")
	for i := range 400 {
		s.Do(t, "SET", fmt.Sprint(i), strings.Repeat("x", 10_000))
	}
	s.Do(t, "CONFIG", "SET", "maxmemory", "0")
	return s
}

// withoutMasterauth is a replica that lacks the master's password. The quorum of the Sentinel is out of reach: a short
// down-after-milliseconds must not begin a failover on a busy machine.
func withoutMasterauth(downAfter int) func(t *testing.T) (string, []string, func(finding) []string) {
	return func(t *testing.T) (string, []string, func(finding) []string) {
		master, replicas, sentinel := watched(t, 1, 2)
		order(t, sentinel, "SENTINEL", "SET", redistest.MasterName, "down-after-milliseconds", downAfter, "auth-pass", "hunter2")
		master.Do(t, "CONFIG", "SET", "requirepass", "hunter2")
		order(t, replicas[0].Addr, "CLIENT", "KILL", "TYPE", "master")
		return sentinelsURL(sentinel), []string{"--password-file", file(t, "hunter2")}, func(finding) []string {
			replicas[0].Do(t, "CONFIG", "SET", "masterauth", "hunter2")
			return nil
		}
	}
}

func sentinelsURL(sentinels ...string) string {
	url := "redis://" + sentinels[0] + "?master_set=" + redistest.MasterName
	for _, other := range sentinels[1:] {
		url += "&addr=" + other
	}
	return url
}

// watchBy lets a Sentinel watch a server.
func watchBy(t *testing.T, sentinel string, s *redistest.Server) {
	t.Helper()
	host, port, _ := net.SplitHostPort(s.Addr)
	_, _ = redistest.AskSentinel(sentinel, "SENTINEL", "REMOVE", redistest.MasterName)
	order(t, sentinel, "SENTINEL", "MONITOR", redistest.MasterName, host, port, 1)
}

// sentinelUserWithout asks a Sentinel as a user who lacks a right.
func sentinelUserWithout(right string) func(t *testing.T) (string, []string, func(finding) []string) {
	return func(t *testing.T) (string, []string, func(finding) []string) {
		sentinel := redistest.Sentinel(t, redistest.Real(t), 1)
		order(t, sentinel, wordsOf("ACL SETUSER ops on >pw ~* &* +@all -"+right)...)
		return sentinelsURL(sentinel) + "&sentinel_user=ops&sentinel_password=pw", nil, func(finding) []string {
			order(t, sentinel, "ACL", "SETUSER", "ops", "+"+right)
			return nil
		}
	}
}

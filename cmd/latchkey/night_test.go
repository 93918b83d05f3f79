package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/subprocess"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/rueidisstore"
	"github.com/creack/pty"
	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
)

// A night is a state of Redis in which every command is run.
type night struct {
	name  string
	start func(t *testing.T) (url string)
	// says is what a command must print, on any stream, and its exit status. The entry "" is for all commands without
	// one.
	says map[string]verdict
	// ID and user are what the commands ask for. If they are nil, that is first and ann.
	id, user func() string
	// timeout is --timeout. It is long, unless a command waits until it is over.
	timeout time.Duration
}

type verdict struct {
	code  int
	words []string
}

func (n night) verdict(c command) verdict {
	if v, ok := n.says[c.name]; ok {
		return v
	}
	return n.says[""]
}

// fail and well are the verdicts for commands that print Redis's reply, or a reason, and no more.
func fail(words ...string) verdict { return verdict{exitError, words} }
func well(words ...string) verdict { return verdict{exitOK, words} }

// endless are the commands that go on until they are interrupted.
var endless = []string{"watch", "top"}

// In each state of Redis, on a terminal, in a pipe, and with --json, each command ends in time, with the documented
// exit status, and with the reason in Redis's own words.
func TestNight(t *testing.T) {
	t.Parallel()
	for _, n := range nights() {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			url := n.start(t)
			for _, c := range commands {
				for _, form := range []string{"terminal", "pipe", "json"} {
					t.Run(c.name+" "+form, func(t *testing.T) {
						t.Parallel()
						n.try(t, url, c, form)
					})
				}
			}
		})
	}
}

// try runs one command.
func (n night) try(t *testing.T, url string, c command, form string) {
	t.Helper()
	args := append(n.sample(c), "--timeout", n.timeout.String())
	if form == "json" {
		args = append(args, "--json")
	}
	want := n.verdict(c)
	r := seen(t, url, form == "terminal", want.code == exitOK && slices.Contains(endless, c.name), args...)
	all := strings.ReplaceAll(r.stdout+r.stderr, "\r\n    ", " ") // a terminal has long lines in parts
	if code := want.code; r.code != code && !(r.ended && r.code == exitOK) {
		t.Errorf("exit %d, want %d: %+v", r.code, code, r)
	}
	contains(t, all, want.words...)
	for _, never := range []string{"TLS", "rediss", "goroutine", "panic"} {
		if strings.Contains(all, never) {
			t.Errorf("the output has %q: %s", never, all)
		}
	}
	if strings.TrimSpace(all) == "" {
		t.Error("there is no output")
	}
	if form == "terminal" {
		return
	}
	if strings.Contains(all, "\x1b") {
		t.Errorf("codes of terminals in a pipe: %q", all)
	}
	if strings.Count(r.stderr, "\n") > 1 {
		t.Errorf("the error has more than one line: %s", r.stderr)
	}
	if form == "json" {
		isJSON(t, r)
	}
}

// sample returns a command with the arguments that it needs.
func (n night) sample(c command) []string {
	args := []string{c.name}
	switch {
	case c.ids > 0:
		id := first
		if n.id != nil {
			id = n.id()
		}
		args = append(args, id)
	case c.check != nil && slices.Contains(c.flags, "user"):
		user := "ann"
		if n.user != nil {
			user = n.user()
		}
		args = append(args, "--user", user)
	}
	return args
}

// isJSON checks that each line of stdout is JSON. There is one, unless the command shows one look after another.
func isJSON(t *testing.T, r sight) {
	t.Helper()
	if r.stdout == "" && strings.HasPrefix(r.stderr, "latchkey: ") && r.code != exitOK {
		return // an error is text
	}
	lines := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
	if len(lines) != 1 && !r.ended {
		t.Errorf("%d lines: %s", len(lines), r.stdout)
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line is not JSON: %q", line)
		}
	}
}

const (
	ample = 10 * time.Second // even a busy machine replies in time
	short = 2 * time.Second  // for commands that get no reply from some servers, and one from others
	// patience is how long a command may take on a busy machine: much longer than a few timeouts.
	patience = time.Minute
)

// A sight is a result as people or programs see it. On a terminal stdout is all of it.
type sight struct {
	result
	ended bool // by an interrupt
}

// seen runs a command, on a terminal or in pipes. An endless one is interrupted as soon as it has shown something.
func seen(t *testing.T, url string, terminal, endless bool, args ...string) sight {
	t.Helper()
	return seenIn(t, nil, url, terminal, endless, args...)
}

// seenIn is seen with more variables.
func seenIn(t *testing.T, env []string, url string, terminal, endless bool, args ...string) (r sight) {
	t.Helper()
	c := calling(t, url, args...)
	c.Env = append(append(c.Env, "TERM=xterm", "NO_COLOR="), env...)
	var stdout, stderr syncBuffer
	shown := make(chan struct{})
	stdout.first = sync.OnceFunc(func() { close(shown) })
	wait := begun(t, c, terminal, &stdout, &stderr)
	done := make(chan struct{})
	go func() {
		wait()
		close(done)
	}()
	limit := time.AfterFunc(patience, func() {
		t.Errorf("%q does not end: %s%s", args, stdout.String(), stderr.String())
		_ = c.Process.Kill()
	})
	defer limit.Stop()
	if endless {
		select {
		case <-shown:
			r.ended = true
			_ = c.Process.Signal(os.Interrupt) // it may have ended
		case <-done:
		}
	}
	<-done
	r.result = result{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
	return r
}

// begun starts a command. The returned function waits until it has ended, and all of its output is there.
func begun(t *testing.T, c *exec.Cmd, terminal bool, stdout, stderr io.Writer) (wait func()) {
	t.Helper()
	if !terminal {
		c.Stdout, c.Stderr = stdout, stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return func() { _ = c.Wait() }
	}
	screen, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_, _ = io.Copy(stdout, screen) // until the command has ended, which Linux reports as an error
		_ = c.Wait()
		screen.Close()
	}
}

// A syncBuffer may be read while it is written.
type syncBuffer struct {
	first func()
	mu    sync.Mutex
	text  strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first != nil && bytes.Contains(p, []byte("\n")) { // and not the bar of the first look
		b.first()
	}
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// nights are all states.
func nights() []night {
	var shard, silent lostShard
	const refused, noReply = "connection refused", "no reply within 2s"
	return []night{
		{"one of three masters is away", func(t *testing.T) string { return shard.start(t, (*redistest.Server).Stop) }, map[string]verdict{
			"": fail(refused), "doctor": fail(refused, "start"),
			"watch": well(refused), "top": well(refused),
		}, shard.lostID, shard.lostUser, short},
		{"one of three masters is frozen", func(t *testing.T) string { return silent.start(t, (*redistest.Server).Pause) }, map[string]verdict{
			"": fail(noReply), "doctor": fail(noReply, "see whether it is stopped or overloaded", "is away: bring it back"), "watch": well(noReply), "top": well(noReply),
		}, silent.lostID, silent.lostUser, short},
		{"a master is down, and no replica takes over", inAFailover, map[string]verdict{"": fail("CLUSTERDOWN The cluster is down"),
			"doctor": fail("is away: bring it back, since no replica replies that could take over")}, nil, nil, short},
		{"frozen", frozen, map[string]verdict{"": fail("no reply within 500ms")}, nil, nil, 500 * time.Millisecond},
		{"at maxclients", atMaxclients, map[string]verdict{"": fail("ERR max number of clients reached")}, nil, nil, ample},
		{"wrong rights", wrongRights, map[string]verdict{"": fail("NOPERM"), "doctor": fail("INFO is refused", "NOPERM")}, nil, nil, ample},
		{"no password", noPassword, map[string]verdict{"": fail("NOAUTH Authentication required: put the password into")}, nil, nil, ample},
		{"full", full, map[string]verdict{"": well(), "doctor": fail("maxmemory"), "end": well("ended")}, nil, nil, ample},
		{"loading", loading, map[string]verdict{"": fail("is loading")}, nil, nil, ample},
	}
}

// A lostShard is a cluster of three masters, one of which was killed.
type lostShard struct {
	*redistest.Cluster
	lost *redistest.Server
}

func (l *lostShard) start(t *testing.T, lose func(*redistest.Server, testing.TB)) string {
	l.Cluster = redistest.NewCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	st := openedOn(t, l.Cluster)
	for i := range 30 {
		begin(t, st, id(i), "{}")
		login(t, st, fmt.Sprint("user-", i), "", i)
	}
	l.lost = l.Nodes[1]
	lose(l.lost, t)
	return "redis://" + l.lost.Addr + "?addr=" + l.Nodes[0].Addr + "&addr=" + l.Nodes[2].Addr
}

// inAFailover is a cluster that has lost a master, and in which no replica has taken over yet. By default no node
// serves any session then.
func inAFailover(t *testing.T) string {
	c := redistest.NewCluster(t, 3, 1)
	st := openedOn(t, c)
	for i := range 30 {
		begin(t, st, id(i), "{}")
	}
	begin(t, st, first, "{}")
	login(t, st, "ann", "", 1)
	ofFirst, ofAnn := c.Owner(t, lease.Slot(keyOf(first))), c.Owner(t, lease.Slot(listKeyOf("ann")))
	i := slices.IndexFunc(c.Nodes[:3], func(n *redistest.Server) bool { return n != ofFirst && n != ofAnn })
	lost := c.Nodes[i]
	for _, n := range c.Nodes {
		n.Do(t, "CONFIG", "SET", "cluster-replica-no-failover", "yes", "cluster-node-timeout", "1000")
	}
	lost.Stop(t)
	var url []string
	for _, n := range c.Nodes {
		if n == lost {
			continue
		}
		url = append(url, n.Addr)
		redistest.Eventually(t, "it says CLUSTERDOWN", func() bool {
			return strings.Contains(fmt.Sprintf("%s", n.Do(t, "CLUSTER", "INFO")), "cluster_state:fail")
		})
	}
	return "redis://" + lost.Addr + "?addr=" + strings.Join(url, "&addr=")
}

func (l *lostShard) lostID() string {
	return l.first(func(i int) (string, string) { return id(i), keyOf(id(i)) })
}

func (l *lostShard) lostUser() string {
	return l.first(func(i int) (string, string) {
		user := fmt.Sprint("user-", i)
		return user, listKeyOf(user)
	})
}

// first returns the first name whose key is on the master that is lost: the second of three.
func (l *lostShard) first(name func(i int) (name, key string)) string {
	for i := range 30 {
		if n, key := name(i); lease.Slot(key)*3/redistest.Slots == 1 {
			return n
		}
	}
	panic("the lost master has none of them")
}

// openedOn returns the store of a program that has sessions in a cluster.
func openedOn(t *testing.T, c *redistest.Cluster) *store.Store {
	t.Helper()
	st, err := rueidisstore.Open(rueidis.ClientOption{InitAddress: []string{c.Nodes[0].Addr}}, patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func listKeyOf(user string) string {
	st, err := store.Open("redis://127.0.0.1:1", store.Options{})
	if err != nil {
		panic(err)
	}
	defer st.Close()
	return (&options{prefix: records.DefaultPrefix}).listKey(st, user)
}

// inhabited starts a server with a session of a guest, and one of ann.
func inhabited(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	s := redistest.Real(t, args...)
	st := opened(t, s.URL, store.Options{Timeout: 20 * time.Second})
	begin(t, st, first, "{}")
	login(t, st, "ann", "Firefox", 1)
	st.Close()
	return s
}

func frozen(t *testing.T) string {
	s := inhabited(t)
	s.Pause(t)
	return s.URL
}

func atMaxclients(t *testing.T) string {
	s := inhabited(t, "--maxclients", "20")
	redistest.Eventually(t, "the store has gone: its connection would make room later", func() bool {
		return strings.Contains(info(t, s), "connected_clients:1\r")
	})
	redistest.Eventually(t, "no client is let in", func() bool {
		conn, err := redigo.Dial("tcp", s.Addr)
		if err != nil {
			return false
		}
		t.Cleanup(func() { conn.Close() })
		_, err = conn.Do("PING")
		return err != nil
	})
	return s.URL
}

func wrongRights(t *testing.T) string {
	s := inhabited(t)
	s.Do(t, "ACL", "SETUSER", "blind", "on", ">pw", "~*", "&*", "-@all", "+ping")
	return "redis://blind:pw@" + s.Addr
}

func noPassword(t *testing.T) string {
	s := inhabited(t)
	s.Do(t, "CONFIG", "SET", "requirepass", "hunter2")
	return s.URL
}

func full(t *testing.T) string {
	s := inhabited(t)
	s.Fill(t)
	return s.URL
}

// loading is a server that reads its data so slowly that it is not ready before the test ends.
func loading(t *testing.T) string {
	s := redistest.Real(t, "--rdbcompression", "no")
	for i := range 3000 {
		s.Do(t, "SET", fmt.Sprint("filler", i), strings.Repeat("x", 2000))
	}
	s.Do(t, "SAVE")
	dir, err := redigo.Strings(s.Do(t, "CONFIG", "GET", "dir"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Stop(t)
	_, port, _ := net.SplitHostPort(s.Addr)
	again, err := subprocess.Start(exec.Command(redistest.Binary(t), "--bind", "127.0.0.1", "--port", port, "--dir", dir[1],
		"--key-load-delay", "50000", "--loading-process-events-interval-bytes", "1024"))
	if err != nil {
		t.Fatal(err)
	}
	again.EndWith(t)
	redistest.Eventually(t, "it is loading", func() bool {
		conn, err := redigo.Dial("tcp", s.Addr)
		if err != nil {
			return false
		}
		defer conn.Close()
		_, err = conn.Do("PING")
		return err != nil && strings.HasPrefix(err.Error(), "LOADING")
	})
	return s.URL
}

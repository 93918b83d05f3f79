package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/testdata/child"
	"github.com/a2139e8d/latchkey/testdata/redistest"
	redigo "github.com/gomodule/redigo/redis"
)

// With Sentinel the URL names the sentinels, and the sessions are those of the master. A sentinel
// without the name of a master, and the name of none, are errors that say so.
func TestSentinel(t *testing.T) {
	s, st := withRedis(t)
	sentinel := startSentinel(t, s)
	begin(t, st, first, "{}")
	hold(t, st, first, "POST /order")
	url := "redis://" + sentinel
	contains(t, must(t, url+"?addr=127.0.0.1:1&master_set=sessions", "locks"), "POST /order")
	contains(t, must(t, url+"?master_set=sessions", "stats"), s.Addr)
	conn, err := redigo.Dial("tcp", sentinel)
	if err == nil {
		defer conn.Close()
		_, err = conn.Do("ACL", "SETUSER", "ops", "on", ">hunter2", "+@all", "&*")
	}
	if err != nil {
		t.Fatal(err)
	}
	must(t, url+"?master_set=sessions&sentinel_user=ops&sentinel_password=hunter2", "locks")
	r := call(t, url+"?master_set=sessions&sentinel_user=ops&sentinel_password=other", "locks")
	fails(t, r, exitError, "WRONGPASS")
	contains(t, must(t, url+"?master_set=sessions", "end", first), "1 session ended")
	fails(t, call(t, url, "locks"), exitError, "it is a Sentinel: add ?master_set=NAME")
	fails(t, call(t, url+"?master_set=others", "locks"), exitError, `the sentinels know no master "others"`)
	fails(t, call(t, s.URL+"?master_set=sessions", "locks"), exitError, "redis at "+s.Addr)
}

// startSentinel returns the host:port of a sentinel that watches a master by the name of sessions.
func startSentinel(t testing.TB, master *redistest.Server) string {
	t.Helper()
	host, port, _ := net.SplitHostPort(master.Addr)
	for range 5 { // a port may be in use: try others
		mine := fmt.Sprint(20000 + rand.IntN(12000)) // below those that the kernel assigns
		path := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %q\nsentinel monitor sessions %s %s 1\n", mine, filepath.Dir(path), host, port)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := child.Start(exec.Command(redistest.Binary(t), path, "--sentinel"))
		if err != nil {
			t.Fatal(err)
		}
		p.EndWith(t)
		if at := "127.0.0.1:" + mine; answers(p, at) {
			return at
		}
	}
	t.Fatal("no sentinel could be started")
	return ""
}

func answers(p *child.Process, sentinel string) bool {
	for begun := time.Now(); time.Since(begun) < 10*time.Second; time.Sleep(5 * time.Millisecond) {
		select {
		case <-p.Done():
			return false
		default:
		}
		if conn, err := redigo.Dial("tcp", sentinel, redigo.DialConnectTimeout(time.Second), redigo.DialReadTimeout(time.Second)); err == nil {
			reply, err := conn.Do("SENTINEL", "MASTER", "sessions")
			conn.Close()
			if err == nil && reply != nil {
				return true
			}
		}
	}
	return false
}

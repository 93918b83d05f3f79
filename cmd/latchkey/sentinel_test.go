package main

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	redigo "github.com/gomodule/redigo/redis"
)

// With Sentinel the URL names the sentinels, and the sessions are those of the master. A sentinel
// without the name of a master, and the name of none, are errors that say so.
func TestSentinel(t *testing.T) {
	s, st := withRedis(t)
	sentinel := redistest.Sentinel(t, s, 1)
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

package rig

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/testdata/redistest"
	"github.com/gomodule/redigo/redis"
)

// Replica starts a replica of the Redis at addr, which may be a wire to it, and waits
// until it has all data.
func Replica(tb testing.TB, addr string, flags ...string) *redistest.Server {
	tb.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		tb.Fatal(err)
	}
	r := redistest.Real(tb, append([]string{"--replicaof", host, port, "--repl-diskless-sync", "no"}, flags...)...)
	AwaitReplica(tb, r)
	return r
}

// AwaitReplica waits until a server is a replica that is in touch with its master.
func AwaitReplica(tb testing.TB, r *redistest.Server) {
	tb.Helper()
	await(tb, 20*time.Second, "the replica follows its master", func() bool {
		return strings.Contains(Replication(tb, r), "master_link_status:up")
	})
}

// LinkDown reports whether a replica knows that it has no master.
func LinkDown(tb testing.TB, r *redistest.Server) bool {
	tb.Helper()
	return strings.Contains(Replication(tb, r), "master_link_status:down")
}

// Promote makes a master of a replica, which stays with what it has got so far.
func Promote(tb testing.TB, r *redistest.Server) {
	tb.Helper()
	r.Do(tb, "REPLICAOF", "NO", "ONE")
}

// Replication returns what a server tells of its part in replication.
func Replication(tb testing.TB, r *redistest.Server) string {
	tb.Helper()
	info, err := redis.String(r.Do(tb, "INFO", "replication"), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return info
}

// Role returns master or slave, or nothing if the server does not say: Sentinel breaks
// its connections when it changes its part.
func Role(r *redistest.Server) string {
	conn, err := redis.Dial("tcp", r.Addr, redis.DialConnectTimeout(time.Second), redis.DialReadTimeout(time.Second))
	if err != nil {
		return ""
	}
	defer conn.Close()
	reply, err := redis.Values(conn.Do("ROLE"))
	if err != nil {
		return ""
	}
	role, _ := redis.String(reply[0], nil)
	return role
}

// await is for what must come: without it, the test cannot go on.
func await(tb testing.TB, patience time.Duration, what string, ok func() bool) {
	tb.Helper()
	for begun := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > patience {
			tb.Fatalf("not after %v: %s", patience, what)
		}
	}
}

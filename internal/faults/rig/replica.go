package rig

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// Replica starts a replica of the Redis at addr, which may be a wire to it, and waits until the replica
// has all data.
func Replica(tb testing.TB, addr string) *redistest.Server {
	tb.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		tb.Fatal(err)
	}
	r := redistest.Real(tb, "--replicaof", host, port, "--repl-diskless-sync", "no")
	awaitReplica(tb, r)
	return r
}

// awaitReplica waits until a server is a replica that is connected to its master.
func awaitReplica(tb testing.TB, r *redistest.Server) {
	tb.Helper()
	redistest.Eventually(tb, "the replica follows its master", func() bool {
		return strings.Contains(replication(tb, r), "master_link_status:up")
	})
}

// Follow makes a server a replica of another, and waits until it follows its master.
func Follow(tb testing.TB, r, master *redistest.Server) {
	tb.Helper()
	host, port, err := net.SplitHostPort(master.Addr)
	if err != nil {
		tb.Fatal(err)
	}
	r.Do(tb, "REPLICAOF", host, port)
	awaitReplica(tb, r)
}

// LinkDown reports whether a replica knows that its master is gone.
func LinkDown(tb testing.TB, r *redistest.Server) bool {
	tb.Helper()
	return strings.Contains(replication(tb, r), "master_link_status:down")
}

// Promote makes a replica a master, with the data that it has.
func Promote(tb testing.TB, r *redistest.Server) {
	tb.Helper()
	r.Do(tb, "REPLICAOF", "NO", "ONE")
}

// replication returns the section of that name from a server's INFO.
func replication(tb testing.TB, r *redistest.Server) string {
	tb.Helper()
	info, err := redis.String(r.Do(tb, "INFO", "replication"), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return info
}

// Role returns master or slave, or "" if the server does not answer: Sentinel breaks its
// connections when it changes its role.
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

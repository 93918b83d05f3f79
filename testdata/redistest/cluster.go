package redistest

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Cluster starts n masters of a Redis Cluster, each with an equal share of the slots. It
// returns when they know of each other, so that a node answers MOVED for the others' keys.
func Cluster(tb testing.TB, n int) []*Server {
	tb.Helper()
	const slots = 16384
	var nodes []*Server
	for i := range n {
		node := Real(tb, "--cluster-enabled", "yes", "--cluster-node-timeout", "60000")
		nodes = append(nodes, node)
		node.Do(tb, "CLUSTER", "ADDSLOTSRANGE", i*slots/n, (i+1)*slots/n-1)
		node.Do(tb, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		host, port, _ := net.SplitHostPort(nodes[0].Addr)
		node.Do(tb, "CLUSTER", "MEET", host, port)
	}
	deadline := time.Now().Add(30 * time.Second)
	for _, node := range nodes {
		for {
			info, _ := redis.String(node.Do(tb, "CLUSTER", "INFO"), nil)
			if strings.Contains(info, "cluster_state:ok") {
				break
			}
			if time.Now().After(deadline) {
				tb.Fatalf("redistest: the nodes of a cluster do not meet:\n%s", info)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nodes
}

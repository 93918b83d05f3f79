package redistest

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// Slots is how many slots a Redis Cluster has.
const Slots = 16384

// A Cluster is a Redis Cluster of real servers. Its methods fail the test if a node does not do what it
// was asked to. They must be called from one goroutine at a time.
type Cluster struct {
	Nodes []*Server // the masters, then their replicas in the same order, then the added nodes

	bus  *bus
	args []string
	size int // how many nodes should know of each other
}

// NewCluster starts masters with equal shares of the slots, and the given number of replicas of each. It
// returns when all nodes know each other and the replicas have all data. args are added to the flags of
// every node. By default a node may be silent for a minute before it counts as dead, and no replica
// changes its master, so that nothing happens unless the test causes it.
func NewCluster(tb testing.TB, masters, replicas int, args ...string) *Cluster {
	tb.Helper()
	c := &Cluster{bus: newBus(tb), args: args}
	for i := range masters {
		node := c.start(tb)
		node.Do(tb, "CLUSTER", "ADDSLOTSRANGE", i*Slots/masters, (i+1)*Slots/masters-1)
		node.Do(tb, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	for range masters * replicas {
		c.start(tb)
	}
	for _, node := range c.Nodes {
		c.meet(tb, node)
	}
	for i, node := range c.Nodes[masters:] {
		c.Replicate(tb, node, c.Nodes[i%masters])
	}
	c.AwaitReady(tb)
	return c
}

// start starts one more node, unknown to the others.
func (c *Cluster) start(tb testing.TB) *Server {
	tb.Helper()
	address := c.bus.nextAddress()
	node := realWith(tb, nil, func(port int) []string {
		return append([]string{
			"--cluster-enabled", "yes",
			"--cluster-node-timeout", "60000",
			"--cluster-port", strconv.Itoa(busPort(port)),
			"--cluster-announce-ip", "127.0.0.1",
			"--cluster-announce-bus-port", strconv.Itoa(c.bus.leadTo(tb, address, busPort(port))),
			"--bind-source-addr", address,
			"--protected-mode", "no", // otherwise it refuses loopback addresses other than 127.0.0.1
			"--cluster-allow-replica-migration", "no", // otherwise a master that has moved all its slots away becomes a replica
			"--repl-diskless-sync", "no",
			"--repl-ping-replica-period", "1", // clients are not shown a replica that has received nothing
		}, c.args...)
	})
	c.bus.named(node, address)
	c.Nodes = append(c.Nodes, node)
	c.size++
	return node
}

// meet introduces a node to all others. Gossip would do so, too, but slowly.
func (c *Cluster) meet(tb testing.TB, node *Server) {
	tb.Helper()
	for _, other := range c.Nodes {
		if other != node {
			host, port, _ := net.SplitHostPort(other.Addr)
			node.Do(tb, "CLUSTER", "MEET", host, port, c.bus.port(other))
		}
	}
}

// ID returns a node's name in the cluster.
func (c *Cluster) ID(tb testing.TB, node *Server) string {
	tb.Helper()
	id, err := redis.String(node.Do(tb, "CLUSTER", "MYID"), nil)
	if err != nil {
		tb.Fatalf("redistest: CLUSTER MYID: %v", err)
	}
	return id
}

// AwaitReady waits until all nodes run and agree that the cluster is well: all slots have an
// owner, no node counts as dead, and each replica is in sync with its master. From then on each
// node can be restarted.
func (c *Cluster) AwaitReady(tb testing.TB) {
	tb.Helper()
	for _, node := range c.Nodes {
		Await(tb, "the cluster is ready", func() error { return c.unready(tb, node) })
	}
	Await(tb, "each node can be restarted", c.shardsDiffer)
}

// unready returns what is wrong with the cluster from one node's point of view.
func (c *Cluster) unready(tb testing.TB, node *Server) error {
	tb.Helper()
	info := text(tb, node, "CLUSTER", "INFO")
	assigned := fmt.Sprintf("cluster_slots_assigned:%d\r", Slots) // without full coverage its state is ok before that
	for _, want := range []string{"cluster_state:ok", assigned, fmt.Sprintf("cluster_known_nodes:%d\r", c.size)} {
		if !strings.Contains(info, want) {
			return fmt.Errorf("%s: no %q in %q", node.Addr, want, info)
		}
	}
	nodes := text(tb, node, "CLUSTER", "NODES")
	for line := range strings.Lines(nodes) {
		for _, sign := range []string{"handshake", "fail", "noaddr", " disconnected"} {
			if strings.Contains(line, sign) {
				return fmt.Errorf("%s: %q", node.Addr, line)
			}
		}
	}
	for _, other := range c.Nodes {
		if master := c.masterOf(tb, other); master != nil {
			if line := "slave " + c.ID(tb, master); strings.Count(nodes, line) == 0 {
				return fmt.Errorf("%s does not know that %s has a replica", node.Addr, master.Addr)
			}
		}
	}
	state := text(tb, node, "INFO", "replication")
	if strings.Contains(state, "role:slave") && !strings.Contains(state, "master_link_status:up") {
		return fmt.Errorf("%s is not in sync: %q", node.Addr, state)
	}
	return nil
}

// text returns the reply to a command as a string.
func text(tb testing.TB, node *Server, cmd string, args ...any) string {
	tb.Helper()
	reply, err := redis.String(node.Do(tb, cmd, args...), nil)
	if err != nil {
		tb.Fatalf("redistest: %s: %v", cmd, err)
	}
	return reply
}

package redistest

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// role returns master or slave, or "" if the node does not answer.
func (s *Server) role(tb testing.TB) string {
	tb.Helper()
	c := s.admin.Get()
	defer c.Close()
	reply, err := redis.Values(c.Do("ROLE"))
	if err != nil || len(reply) == 0 {
		return ""
	}
	role, _ := redis.String(reply[0], nil)
	return role
}

// Answers reports whether a node answers.
func (s *Server) Answers(tb testing.TB) bool {
	tb.Helper()
	return s.role(tb) != ""
}

// IsMaster reports whether a node answers, and says that it is a master.
func (s *Server) IsMaster(tb testing.TB) bool {
	tb.Helper()
	return s.role(tb) == "master"
}

// Masters returns the nodes that say they are masters.
func (c *Cluster) Masters(tb testing.TB) (masters []*Server) {
	tb.Helper()
	for _, node := range c.Nodes {
		if node.IsMaster(tb) {
			masters = append(masters, node)
		}
	}
	return masters
}

// ReplicaOf returns a replica of a master.
func (c *Cluster) ReplicaOf(tb testing.TB, master *Server) *Server {
	tb.Helper()
	for _, node := range c.Nodes {
		if c.masterOf(tb, node) == master {
			return node
		}
	}
	tb.Fatalf("redistest: %s has no replica", master.Addr)
	return nil
}

// masterOf returns the master of a replica. It returns nil for a master and for a node that does not
// answer.
func (c *Cluster) masterOf(tb testing.TB, replica *Server) *Server {
	tb.Helper()
	conn := replica.admin.Get()
	defer conn.Close()
	reply, err := redis.Values(conn.Do("ROLE"))
	if err != nil || len(reply) < 3 {
		return nil
	}
	host, _ := redis.String(reply[1], nil)
	port, _ := redis.Int(reply[2], nil)
	addr := net.JoinHostPort(host, fmt.Sprint(port))
	if i := slices.IndexFunc(c.Nodes, func(s *Server) bool { return s.Addr == addr }); i >= 0 {
		return c.Nodes[i]
	}
	return nil
}

// Replicate makes node, which is empty or a replica, a replica of master.
func (c *Cluster) Replicate(tb testing.TB, node, master *Server) {
	tb.Helper()
	id := c.ID(tb, master)
	Await(tb, "the node knows its master", func() error {
		conn := node.admin.Get()
		defer conn.Close()
		_, err := conn.Do("CLUSTER", "REPLICATE", id)
		return err
	})
}

// Failover makes a replica the master, and returns when it is one. Without how, nothing is lost. FORCE is
// for a master that does not answer; TAKEOVER does not need the consent of the other masters.
func (c *Cluster) Failover(tb testing.TB, replica *Server, how ...any) {
	tb.Helper()
	// Each election has a new epoch. A replica that has not heard of the last election would ask for
	// votes in its epoch again, get none, and wait for four node timeouts.
	Await(tb, "the replica has heard of the last election", func() error {
		known := c.info(tb, replica, "cluster_current_epoch")
		for _, node := range c.Nodes {
			if node.Answers(tb) && c.info(tb, node, "cluster_current_epoch") > known {
				return fmt.Errorf("%s knows a later one than %d", node.Addr, known)
			}
		}
		return nil
	})
	// On a busy machine the votes may come too late. The next election is then four node timeouts later,
	// at the earliest.
	for range 3 {
		replica.Do(tb, "CLUSTER", append([]any{"FAILOVER"}, how...)...)
		for begun := time.Now(); time.Since(begun) < 12*time.Second && !replica.IsMaster(tb); {
			time.Sleep(5 * time.Millisecond) // between two looks
		}
		if replica.IsMaster(tb) {
			return
		}
	}
	c.AwaitMaster(tb, replica)
}

// AwaitMaster waits until a node is a master.
func (c *Cluster) AwaitMaster(tb testing.TB, node *Server) {
	tb.Helper()
	Await(tb, "the replica is a master", func() error {
		if !node.IsMaster(tb) {
			return errors.New(node.Addr + " is none")
		}
		return nil
	})
}

// Add adds a master without slots.
func (c *Cluster) Add(tb testing.TB) *Server {
	tb.Helper()
	node := c.start(tb)
	c.meet(tb, node)
	c.AwaitReady(tb)
	return node
}

// Remove moves all slots of a master to another, and makes all nodes forget it. The removed node keeps
// running, as a cluster by itself, so that clients which ask it learn that it has nothing.
func (c *Cluster) Remove(tb testing.TB, node, heir *Server) {
	tb.Helper()
	c.MoveAll(tb, c.SlotsOf(tb, node), node, heir)
	id := c.ID(tb, node)
	// A node does not forget its master.
	for c.hasReplica(tb, node) {
		c.Replicate(tb, c.ReplicaOf(tb, node), heir)
	}
	c.Nodes = slices.DeleteFunc(c.Nodes, func(s *Server) bool { return s == node })
	c.size--
	for _, other := range c.Nodes {
		Await(tb, "a node is forgotten", func() error {
			conn := other.admin.Get()
			defer conn.Close()
			_, err := conn.Do("CLUSTER", "FORGET", id)
			if err != nil && strings.Contains(err.Error(), "Unknown node") {
				return nil
			}
			return err
		})
	}
	node.Do(tb, "CLUSTER", "RESET")
	c.AwaitReady(tb)
}

func (c *Cluster) hasReplica(tb testing.TB, master *Server) bool {
	tb.Helper()
	return slices.ContainsFunc(c.Nodes, func(s *Server) bool { return c.masterOf(tb, s) == master })
}

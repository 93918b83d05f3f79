package goredisstore

import (
	"errors"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/go-redis/v9"
)

// A subscription whose connection breaks ends. It does not go on by itself over another connection,
// which would hide that messages were missed.
func TestSubscriptionEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	s, err := open(t, server.Addr, patience).Subscribe(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := server.Do(t, "CLIENT", "KILL", "TYPE", "pubsub"); got != int64(1) {
		t.Fatalf("%v connections were killed", got)
	}
	for range 3 {
		if m, err := s.Receive(); !errors.Is(err, transport.ErrUnavailable) {
			t.Fatalf("received %q, %v", m, err)
		}
	}
	if n := server.Do(t, "PUBLISH", "mine", "x"); n != int64(0) {
		t.Errorf("%v still listen", n)
	}
}

// A channel of a slot is listened to at the node that has it, where a message counts its listeners.
// When the slot moves, the subscription ends, and the next one is at the new node, whatever go-redis
// knows by then.
func TestSubscribeShard(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0)
	channel := keyOf(t, c, c.Nodes[0]) + "wake"
	client := newClient(t, redis.NewClusterClient(clusterOptions(c)), patience).(transport.ClusterClient)
	if !client.IsCluster() {
		t.Error("it is no cluster")
	}
	for _, to := range []*redistest.Server{c.Nodes[1], c.Nodes[2], c.Nodes[0]} {
		s, err := client.SubscribeShard(t.Context(), channel)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		heard := do(t, client, channel, transport.Command{"SPUBLISH", channel, "hello"})
		if m, err := s.Receive(); m != "hello" || err != nil || heard[0] != int64(1) {
			t.Errorf("%v heard it: %q, %v", heard[0], m, err)
		}
		c.Move(t, c.Slot(t, channel), to)
		if m, err := s.Receive(); !errors.Is(err, transport.ErrMoved) {
			t.Errorf("the slot has moved: %q, %v", m, err)
		}
	}
}

// A slot may move before go-redis knows, so that the node refuses the subscription.
func TestSubscribeShardIsRedirected(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 2, 0)
	key := keyOf(t, c, c.Nodes[0])
	client := newClient(t, redis.NewClusterClient(clusterOptions(c)), patience).(transport.ClusterClient)
	do(t, client, key, transport.Command{"GET", key})
	c.Move(t, c.Slot(t, key), c.Nodes[1])
	s, err := client.SubscribeShard(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n := c.Nodes[1].Do(t, "SPUBLISH", key, "hello"); n != int64(1) {
		t.Errorf("%v listen at the new node", n)
	}
	if m, err := s.Receive(); m != "hello" || err != nil {
		t.Errorf("received %q, %v", m, err)
	}
}

// An ordinary channel on a cluster is heard whichever node the message comes from.
func TestSubscribeOnCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 2, 0)
	s, err := newClient(t, redis.NewClusterClient(clusterOptions(c)), patience).Subscribe(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, node := range c.Nodes {
		node.Do(t, "PUBLISH", "mine", i)
		if m, err := s.Receive(); m != string('0'+rune(i)) || err != nil {
			t.Errorf("received %q, %v", m, err)
		}
	}
}

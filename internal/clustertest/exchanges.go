package clustertest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// All commands of a round trip go to the node that has its slot, even a command without a key, and a
// script whose first key is not its first argument.
func exchangeGoesToItsNode(s *site) {
	client := s.client()
	for i, node := range s.Nodes[:3] {
		key := s.keyOf(node)
		got := exchange(s, client, key,
			transport.Command{"SET", key, i},
			transport.Command{"CLUSTER", "MYID"},
			transport.Command{"EVAL", "return redis.call('GET', KEYS[1])", 1, key, "another"},
			transport.Command{"EVAL", "return ARGV[1]", 0, "no key"},
			transport.Command{"MGET", key, key + "none"})
		if want := fmt.Sprintf("[OK %s %d no key [%d nil]]", s.ID(s.T, node), i, i); got != want {
			s.Errorf("%s, want %s", got, want)
		}
	}
	if !client.IsCluster() {
		s.Error("the client does not report a cluster")
	}
}

// After a slot has moved, the first round trip is redirected. The new node executes its commands once, in
// order.
func slotHasMoved(s *site) {
	key, client := s.keyOf(s.first()), s.client()
	for i, to := range []*redistest.Server{s.second(), s.first(), s.second()} {
		exchange(s, client, key, transport.Command{"SET", key, i})
		s.Move(s.T, s.Slot(s.T, key), to)
		got := exchange(s, client, key,
			transport.Command{"PING", "n"},
			transport.Command{"APPEND", key, "a"},
			transport.Command{"APPEND", key, "b"},
			transport.Command{"GET", key})
		if want := fmt.Sprintf("[n 2 3 %dab]", i); got != want {
			s.Errorf("move %d: %s, want %s", i, got, want)
		}
	}
}

// While a slot is being moved, existing keys stay at the old node, and others are at the new one. The client may
// not know the new node, which has no slots yet. A command with keys on both nodes gets TRYAGAIN, since that is
// Redis's rule.
func slotIsMoving(s *site) {
	for _, used := range []bool{false, true} {
		for _, to := range []*redistest.Server{s.second(), s.spare} {
			key, client := s.keyOf(s.first()), s.client()
			here, there := key+"here", key+"there"
			if exchange(s, s.client(), key, transport.Command{"SET", here, "v"}); used {
				exchange(s, client, key, transport.Command{"GET", here})
			}
			m := s.BeginMove(s.T, s.Slot(s.T, key), to)
			for i := range 3 {
				got := exchange(s, client, here, transport.Command{"PING", "n"}, transport.Command{"GET", here})
				if got != "[n v]" {
					s.Errorf("reply of the old node: %s", got)
				}
				got = exchange(s, client, there, transport.Command{"PING", "n"}, transport.Command{"INCR", there},
					transport.Command{"INCR", there})
				if want := fmt.Sprintf("[n %d %d]", 2*i+1, 2*i+2); got != want {
					s.Errorf("reply of the new node: %s, want %s", got, want)
				}
			}
			if got := exchange(s, client, key, transport.Command{"MGET", here, there}); !strings.Contains(got, "TRYAGAIN") {
				s.Errorf("with keys on both nodes: %s", got)
			}
			s.FinishMove(s.T, m)
			exchange(s, client, key, transport.Command{"DEL", here, there})
			s.Move(s.T, m.Slot, m.From)
		}
	}
}

// If each of two nodes says that the other has the slot, a round trip still ends.
func redirectionsAreBounded(s *site) {
	key, client := s.keyOf(s.first()), s.client()
	exchange(s, client, key, transport.Command{"GET", key})
	slot := s.Slot(s.T, key)
	s.first().Do(s.T, "CLUSTER", "SETSLOT", slot, "NODE", s.ID(s.T, s.second()))
	defer s.first().Do(s.T, "CLUSTER", "SETSLOT", slot, "NODE", s.ID(s.T, s.first()))
	if got := exchange(s, client, key, transport.Command{"GET", key}); !strings.Contains(got, "MOVED ") {
		s.Errorf("the reply is %s", got)
	}
}

// The subscription to a channel of a slot is at the node that has the slot, where PUBLISH counts the
// listeners. When the slot moves, the subscription ends. The next one is at the new node, even if the
// client does not know that node yet.
func subscribeShard(s *site) {
	client := s.client()
	channel := s.keyOf(s.first()) + "wake"
	for _, to := range []*redistest.Server{s.second(), s.third(), s.first()} {
		sub, err := client.SubscribeShard(s.Context(), channel)
		if err != nil {
			s.Fatal(err)
		}
		defer sub.Close()
		heard := exchange(s, client, channel, transport.Command{"SPUBLISH", channel, "hello"})
		if m, err := sub.Receive(); m != "hello" || err != nil || heard != "[1]" {
			s.Errorf("%v heard it: %q, %v", heard, m, err)
		}
		s.Move(s.T, s.Slot(s.T, channel), to)
		if m, err := sub.Receive(); !errors.Is(err, transport.ErrMoved) {
			s.Errorf("after the slot has moved, Receive returns %q, %v", m, err)
		}
	}
}

// An ordinary channel on a cluster gets messages from any node.
func subscribeOnAnyNode(s *site) {
	sub, err := s.client().Subscribe(s.Context(), "mine")
	if err != nil {
		s.Fatal(err)
	}
	defer sub.Close()
	for i, node := range s.Nodes {
		node.Do(s.T, "PUBLISH", "mine", i)
		if m, err := sub.Receive(); m != fmt.Sprint(i) || err != nil {
			s.Errorf("received %q, %v", m, err)
		}
	}
}

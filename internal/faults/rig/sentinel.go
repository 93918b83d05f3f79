package rig

import (
	"fmt"
	"net"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// Sentinels are three processes that watch a master and its replicas, and promote a replica when two of
// them agree that the master does not answer.
type Sentinels struct {
	Addrs []string // host:port
}

// NewSentinels starts the sentinels, and waits until they know each other and the replicas. They end with
// the test.
func NewSentinels(tb testing.TB, master *redistest.Server, replicas int) *Sentinels {
	tb.Helper()
	s := &Sentinels{}
	for range 3 {
		s.Addrs = append(s.Addrs, redistest.Sentinel(tb, master, 2))
	}
	for _, at := range s.Addrs {
		// They exchange messages more often than by default, so that tests are faster.
		_, _ = redistest.AskSentinel(at, "SENTINEL", "DEBUG", "INFO-PERIOD", 500, "PUBLISH-PERIOD", 100, "ASK-PERIOD", 100)
	}
	for _, at := range s.Addrs {
		redistest.Eventually(tb, "the sentinels know each other", func() bool {
			known, err := redis.StringMap(redistest.AskSentinel(at, "SENTINEL", "MASTER", redistest.MasterName))
			return err == nil && known["num-other-sentinels"] == "2" && known["num-slaves"] == fmt.Sprint(replicas)
		})
	}
	for _, at := range s.Addrs {
		// A sentinel that has not heard of the failover after four such periods would undo it.
		_, _ = redistest.AskSentinel(at, "SENTINEL", "DEBUG", "PUBLISH-PERIOD", 2000)
	}
	return s
}

// Watch makes the sentinels consider a master dead after 700 ms without an answer. Before, and after the
// failover, they wait longer: a master that is slow on a busy machine must not be considered dead.
func (s *Sentinels) Watch(tb testing.TB) {
	tb.Helper()
	s.set(tb, "down-after-milliseconds", 700)
}

func (s *Sentinels) set(tb testing.TB, option string, value int) {
	tb.Helper()
	for _, at := range s.Addrs {
		if _, err := redistest.AskSentinel(at, "SENTINEL", "SET", redistest.MasterName, option, value); err != nil {
			tb.Fatal(err)
		}
	}
}

// AwaitMaster waits until the sentinels have another master than before, and returns its address.
func (s *Sentinels) AwaitMaster(tb testing.TB, before string) string {
	tb.Helper()
	now := before
	redistest.Eventually(tb, "the sentinels have promoted a replica", func() bool {
		for _, at := range s.Addrs {
			if found, err := askSentinel(at); err == nil && found != before {
				now = found
			}
		}
		return now != before
	})
	s.set(tb, "down-after-milliseconds", 60000)
	return now
}

// Hurry makes the sentinels demote a stale master within one second instead of eight. It waits until all
// of them know the master.
func (s *Sentinels) Hurry(tb testing.TB, master string) {
	tb.Helper()
	for _, at := range s.Addrs {
		redistest.Eventually(tb, "each sentinel knows the master", func() bool {
			found, err := askSentinel(at)
			return err == nil && found == master
		})
		_, _ = redistest.AskSentinel(at, "SENTINEL", "DEBUG", "PUBLISH-PERIOD", 250)
	}
}

func askSentinel(at string) (string, error) {
	reply, err := redis.Strings(redistest.AskSentinel(at, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", redistest.MasterName))
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(reply[0], reply[1]), nil
}

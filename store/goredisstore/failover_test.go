package goredisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/go-redis/v9"
)

// A master that is killed, or hangs, is replaced by its replica, and its sessions are served again as
// soon as the cluster has done that. Go-redis alone would ask for the new master after a minute. The
// keys of other masters are not affected.
func TestMasterIsReplaced(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*redistest.Server, testing.TB){
		"killed": (*redistest.Server).Stop,
		"hangs":  (*redistest.Server).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := redistest.NewCluster(t, 3, 1, "--cluster-node-timeout", "1000")
			master := c.Nodes[0]
			key, other := keyOf(t, c, master), keyOf(t, c, c.Nodes[1])
			client := newClient(t, redis.NewClusterClient(clusterOptions(c)), time.Second)
			for _, key := range []string{key, other} {
				do(t, client, key, transport.Command{"SET", key, "v"}, transport.Command{"WAIT", 1, 10_000})
			}
			replica := c.ReplicaOf(t, master)
			end(master, t)
			var ready time.Time // the replica is the master
			killed := time.Now()
			for {
				do(t, client, other, transport.Command{"INCR", other + "n"})
				replies, err := client.Do(t.Context(), key, transport.Command{"GET", key})
				if ready.IsZero() && replica.IsMaster(t) {
					ready = time.Now()
				}
				if err == nil && replies[0] == "v" {
					break
				}
				if err == nil {
					err, _ = replies[0].(error)
				} else if !errors.Is(err, transport.ErrUnavailable) {
					t.Errorf("%v", err)
				}
				if time.Since(killed) > 40*time.Second {
					t.Fatalf("after %v it is still %v", time.Since(killed), err)
				}
			}
			t.Logf("the replica is the master after %v, and serves after %v", ready.Sub(killed), time.Since(killed))
			if late := time.Since(ready); late > 20*time.Second {
				t.Errorf("it was served %v after the replica had become the master", late)
			}
		})
	}
}

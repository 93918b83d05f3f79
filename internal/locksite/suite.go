package locksite

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/lockertest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// Run checks that all locks keep the promises of a Locker over a client, each in a parallel subtest.
// start starts a server, or a cluster of one node; nil: a real server. open returns a client of what is at an address, as
// package storetest wants it.
func Run(t *testing.T, start func(testing.TB) *redistest.Server, open func(t testing.TB, address string, timeout time.Duration) transport.Client) {
	t.Helper()
	lent := &Servers{TB: t, Start: start}
	for name, tt := range map[string]struct {
		nodes int
		lock  func(nodes []transport.Client, o locker.Options) locker.Locker
	}{
		"Spin": {1, func(nodes []transport.Client, o locker.Options) locker.Locker {
			return locker.New(locker.SpinAlgorithm(nodes[0]), o)
		}},
		"Timestamp": {1, func(nodes []transport.Client, o locker.Options) locker.Locker {
			return locker.New(locker.TimestampAlgorithm(nodes[0]), o)
		}},
		"Redlock": {3, func(nodes []transport.Client, o locker.Options) locker.Locker {
			return locker.NewRedlockOn(nodes, o)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lockertest.Run(t, lockertest.Kind{
				Site: func(t *testing.T) lockertest.Site {
					var servers []*redistest.Server
					for range tt.nodes {
						servers = append(servers, lent.Get(t))
					}
					return New(t, servers, func(ways []*redistest.Proxy, o locker.Options) locker.Locker {
						timeout := o.Timeout
						if timeout <= 0 { // a bad one is for the lock to refuse
							timeout = locker.DefaultTimeout
						}
						var nodes []transport.Client
						for _, way := range ways {
							nodes = append(nodes, open(t, way.Addr, timeout))
						}
						return tt.lock(nodes, o)
					})
				},
				Nodes:       tt.nodes,
				SeesRelease: true,
				FIFO:        true,
				Repeats:     true,
			})
		})
	}
}

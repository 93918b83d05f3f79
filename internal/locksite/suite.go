package locksite

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/lockertest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// Run checks that locks keep the promises of a Locker over a client on one real server, each in a
// parallel subtest. open returns a client of the server at an address, as in package storetest. Redlock's
// use of several servers does not depend on the client.
func Run(t *testing.T, open func(t testing.TB, address string, timeout time.Duration) transport.Client) {
	t.Helper()
	lent := &Servers{TB: t}
	for name, algorithm := range map[string]func(transport.Client) locker.Algorithm{
		"Spin":      locker.SpinAlgorithm,
		"Timestamp": locker.TimestampAlgorithm,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lockertest.Run(t, lockertest.Kind{
				Site: func(t *testing.T) lockertest.Site {
					return New(t, []*redistest.Server{lent.Get(t)}, func(ways []*redistest.Proxy, o locker.Options) locker.Locker {
						timeout := o.Timeout
						if timeout <= 0 { // the lock must refuse a bad one
							timeout = locker.DefaultTimeout
						}
						return locker.New(algorithm(open(t, ways[0].Addr, timeout)), o)
					})
				},
				Nodes:       1,
				SeesRelease: true,
				FIFO:        true,
				Repeats:     true,
			})
		})
	}
}

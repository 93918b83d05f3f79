package goredis

import (
	"cmp"
	"testing"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/lockertest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/testdata/locksite"
	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// The locks that work on any client keep the promises of a Locker over go-redis.
func TestLockers(t *testing.T) {
	t.Parallel()
	lent := &locksite.Servers{TB: t}
	for name, algorithm := range map[string]func(transport.Client) locker.Algorithm{
		"Spin":      locker.SpinAlgorithm,
		"Timestamp": locker.TimestampAlgorithm,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lockertest.Run(t, lockertest.Kind{
				Site: func(t *testing.T) lockertest.Site {
					return locksite.New(t, []*redistest.Server{lent.Get(t)}, func(ways []*redistest.Proxy, o locker.Options) locker.Locker {
						return locker.New(algorithm(openRESP2(t, ways[0].Addr, cmp.Or(o.Timeout, locker.DefaultTimeout))), o)
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

// Package goredisstore keeps sessions in Redis through a go-redis client that the program has
// already: one server, Sentinel ([redis.NewFailoverClient]) or Cluster ([redis.NewClusterClient]).
//
//	c := redis.NewClusterClient(&redis.ClusterOptions{
//		Addrs:                 []string{"redis-1:6379", "redis-2:6379", "redis-3:6379"},
//		ContextTimeoutEnabled: true,
//	})
//	st, err := goredisstore.New(c, store.Options{})
//
// # When a master dies
//
// By itself a ClusterClient does not look for the new master before ClusterStateReloadInterval,
// which is 60 s (redis/go-redis#3979). Here it is asked to whenever an exchange fails, so that
// sessions are served again about a second after the cluster has replaced the master. Where a node
// hangs, it may be that node which go-redis asks, and then nothing else for ReadTimeout, 5 s: set that
// to 1 s, say. Programs that use the same client for other things should set ClusterStateReloadInterval
// all the same: without sessions nobody asks.
//
// # Options of go-redis
//
// ContextTimeoutEnabled must be true. Without it, go-redis does not keep to deadlines, and a server
// that hangs answers after ReadTimeout, 5 s; with a ReadTimeout or WriteTimeout of -2, never. A
// ClusterClient must not read from replicas. So [New] refuses ReadOnly, RouteByLatency,
// RouteRandomly, NewFailoverClusterClient and Ring, too. A ClusterClient
// without a ReadTimeout would wait for ever, and is refused.
//
// MaxRetries and MaxRedirects do not count here. What go-redis repeats by itself may be executed
// twice without anybody knowing; so it is kept from that, and Latchkey repeats what can be repeated.
// DialTimeout, ReadTimeout and PoolTimeout may be longer than [store.Options.Timeout], which bounds
// all of them together. To use hooks, TLS, credentials or another database is the program's affair.
// A hook that panics fails its exchange with [store.ErrUnavailable], and the error says where that was.
//
// # Connections
//
// Each exchange has a connection to itself. Go-redis has 10 of them for pipelines, in each process
// and to each node (PipelinePoolSize), and takes those for single commands (PoolSize) where they do
// not suffice. While requests wait for sessions that other processes have, there is one more, for
// notifications; on a cluster it is one for each of these sessions.
//
// Users of a cluster need two rights more than those of one server: +cluster|slots and +asking.
// With +spublish and +ssubscribe for the channels latchkey:wake:*, a process that waits for a
// session learns at once when its turn has come.
package goredisstore

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/go-redis/v9"
)

// New returns a store on c, which stays the caller's: it is not closed with the store. It does not
// connect yet; see [store.Store.Ping]. The error names the option of c or o that must be another.
func New(c redis.UniversalClient, o store.Options) (*store.Store, error) {
	client, err := NewClient(c, cmp.Or(o.Timeout, locker.DefaultTimeout))
	if err != nil {
		return nil, err
	}
	st := store.NewOn(client, o)
	if err := records.Of(st).Err(); err != nil {
		return nil, err
	}
	return st, nil
}

// NewClient returns c as a client for locks: for [locker.SpinAlgorithm],
// [locker.TimestampAlgorithm], and as a node of [locker.NewRedlockOn]. Each exchange takes at most
// timeout. The error is as that of [New].
func NewClient(c redis.UniversalClient, timeout time.Duration) (transport.Client, error) {
	if timeout <= 0 {
		return nil, fmt.Errorf("goredisstore: the timeout is %v: it must be more than 0", timeout)
	}
	switch c := c.(type) {
	case *redis.Client:
		if c != nil {
			o := c.Options()
			return &client{c, timeout}, checkDeadlines(o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout)
		}
	case *redis.ClusterClient:
		if c != nil {
			return newCluster(c, timeout), checkCluster(c.Options())
		}
	case *redis.Ring:
		return nil, errors.New("goredisstore: it is a Ring, which gives the keys of a server that is away" +
			" to another, where the sessions are not: use a ClusterClient, or NewFailoverClient")
	case nil:
	default:
		return nil, fmt.Errorf("goredisstore: it is a %T, whose options cannot be checked:"+
			" give the *redis.Client or *redis.ClusterClient that is in it", c)
	}
	return nil, errors.New("goredisstore: the client is nil")
}

func checkDeadlines(kept bool, read, write time.Duration) error {
	switch {
	case !kept:
		return errors.New("goredisstore: ContextTimeoutEnabled is false, so that a server that hangs" +
			" answers after ReadTimeout, whatever the deadline: set it to true")
	case read < 0, write < 0: // go-redis has made -1 of -2, and 0 of -1
		return errors.New("goredisstore: ReadTimeout or WriteTimeout is -2, which means that deadlines" +
			" do not count: set it to -1, or to a time")
	}
	return nil
}

func checkCluster(o *redis.ClusterOptions) error {
	const replicas = "a master that has become a replica would answer with old records: use a client without it"
	switch {
	case o.ClusterSlots != nil:
		return errors.New("goredisstore: ClusterSlots is set, as NewFailoverClusterClient does. The servers" +
			" are no cluster then, and one that has become a replica would answer with old records:" +
			" use NewFailoverClient")
	case o.RouteByLatency, o.RouteRandomly:
		return errors.New("goredisstore: RouteByLatency or RouteRandomly is true, which means ReadOnly: " + replicas)
	case o.ReadOnly:
		return errors.New("goredisstore: ReadOnly is true: " + replicas)
	case o.ReadTimeout == 0: // go-redis has made it of -1
		return errors.New("goredisstore: ReadTimeout is -1: when a node hangs, go-redis may ask it for ever" +
			" which node has which slot: set it to a time")
	}
	return checkDeadlines(o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout)
}

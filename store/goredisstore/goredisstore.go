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
// By itself a ClusterClient looks for the new master only after ClusterStateReloadInterval, which is 60 s
// (redis/go-redis#3979). This package makes it look whenever a round trip fails, so that sessions are served
// again about a second after the cluster has replaced the master. If a node hangs, go-redis may ask that very
// node, and then no other for ReadTimeout, 5 s: set ReadTimeout to 1 s, for example. A program that also uses
// the client for other purposes should set ClusterStateReloadInterval as well, since without sessions this
// package does not make it look.
//
// # Options of go-redis
//
// ContextTimeoutEnabled must be true. Without it, go-redis ignores deadlines, and a call to a server that
// hangs fails only after ReadTimeout, 5 s, or never with a ReadTimeout or WriteTimeout of -2. A ClusterClient
// must not read from replicas. So [New] refuses ReadOnly, RouteByLatency, RouteRandomly,
// NewFailoverClusterClient and Ring, too. Do not set ReplicaOnly of FailoverOptions, either: New cannot see it. A
// ClusterClient without a ReadTimeout would wait for ever, and is refused.
//
// MaxRetries and MaxRedirects have no effect. If go-redis repeated a command, the command might be executed
// twice unnoticed. So go-redis repeats nothing, and Latchkey repeats what can be repeated. DialTimeout,
// ReadTimeout and PoolTimeout may be longer than [store.Options.Timeout], which bounds all of them together.
// The program may use hooks, TLS, credentials or another database. If a hook panics, its round trip fails
// with [store.ErrUnavailable], and the error says where the panic was.
//
// # Connections
//
// Each round trip has a connection to itself. Go-redis has 10 connections for pipelines, in each process and
// to each node (PipelinePoolSize). If these are not enough, it takes the connections for single commands
// (PoolSize). While requests wait for sessions that other processes hold, there is one more connection, for
// notifications; on a cluster there is one for each of these sessions.
//
// # Rights
//
// A Redis user needs these rights, which store/REDIS.md explains:
//
//	one server     ACL SETUSER latchkey on >PASSWORD resetkeys ~latchkey:* resetchannels -@all +ping +get +mget +getrange +set +del +pexpire +pttl +rename +time +eval +evalsha
//	logins         +zscore +zadd +zrem +zcard +zrange +zremrangebyscore
//	notifications  +publish +subscribe +pubsub|numsub &latchkey:wake:*
//	cluster        +cluster|slots +asking, and for notifications +spublish +ssubscribe &latchkey:wake:*
//
// # Log lines of go-redis
//
// While Redis is unavailable, go-redis writes lines of its own, without a level. Latchkey's log line says the same.
// logging.Disable, in github.com/redis/go-redis/v9/logging, silences go-redis for the whole program.
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

// New returns a store on c, which stays the caller's: closing the store does not close c. New does not
// connect; see [store.Store.Ping]. The error names the option of c or o that must change.
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

// NewClient returns c as a client for locks: for [locker.SpinAlgorithm], [locker.TimestampAlgorithm], and as
// a node of [locker.NewRedlockOn]. Each round trip takes at most timeout. It fails for the same reasons as
// [New].
func NewClient(c redis.UniversalClient, timeout time.Duration) (transport.Client, error) {
	if timeout <= 0 {
		return nil, fmt.Errorf("goredisstore: the timeout is %v: it must be more than 0", timeout)
	}
	switch c := c.(type) {
	case *redis.Client:
		if c != nil {
			o := c.Options()
			if err := checkDeadlines(o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout); err != nil {
				return nil, err
			}
			return &client{c, timeout}, nil
		}
	case *redis.ClusterClient:
		if c != nil {
			if err := checkCluster(c.Options()); err != nil {
				return nil, err
			}
			return newCluster(c, timeout), nil
		}
	case *redis.Ring:
		return nil, errors.New("goredisstore: the client is a Ring, which sends the keys of an unavailable server" +
			" to another, which does not have the sessions: use a ClusterClient, or NewFailoverClient")
	case nil:
	default:
		return nil, fmt.Errorf("goredisstore: the client is a %T, whose options cannot be checked:"+
			" give the *redis.Client or *redis.ClusterClient that is in it", c)
	}
	return nil, errors.New("goredisstore: the client is nil")
}

func checkDeadlines(kept bool, read, write time.Duration) error {
	switch {
	case !kept:
		return errors.New("goredisstore: ContextTimeoutEnabled is false, so a call to a server that hangs" +
			" fails after ReadTimeout, whatever the deadline: set it to true")
	case read < 0, write < 0: // go-redis has changed -2 to -1, and -1 to 0
		return errors.New("goredisstore: ReadTimeout or WriteTimeout is -2, which means that deadlines" +
			" are ignored: set it to -1, or to a time")
	}
	return nil
}

func checkCluster(o *redis.ClusterOptions) error {
	const replicas = "a master that has become a replica would return old records: use a client without it"
	switch {
	case o.ClusterSlots != nil:
		return errors.New("goredisstore: ClusterSlots is set, as NewFailoverClusterClient does. The servers" +
			" are not a cluster then, and a server that has become a replica would return old records:" +
			" use NewFailoverClient")
	case o.RouteByLatency, o.RouteRandomly:
		return errors.New("goredisstore: RouteByLatency or RouteRandomly is true, which means ReadOnly: " + replicas)
	case o.ReadOnly:
		return errors.New("goredisstore: ReadOnly is true: " + replicas)
	case o.ReadTimeout == 0: // go-redis has changed -1 to 0
		return errors.New("goredisstore: ReadTimeout is -1: if a node hangs, go-redis may ask that node for ever" +
			" which node has which slot: set it to a time")
	}
	return checkDeadlines(o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout)
}

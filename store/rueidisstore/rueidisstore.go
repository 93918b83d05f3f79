// Package rueidisstore makes a [store.Store] over [github.com/redis/rueidis]: for one server, for Sentinel,
// and for a Redis Cluster, where sessions are spread over all masters. It is a separate module, so that a
// program does not get a client that it does not use.
//
//	go get github.com/a2139e8d/latchkey github.com/a2139e8d/latchkey/store/rueidisstore
//
// All promises hold, on each topology.
//
// # Where Redis is
//
//   - One server: its address alone in InitAddress.
//   - A cluster: addresses of some of its nodes. One of these nodes must reply when the store is first used.
//     SelectDB must be 0.
//   - Sentinel: addresses of the sentinels, and Sentinel.MasterSet. The sentinels' user, password and TLS are
//     separate, in ClientOption.Sentinel.
//
// [rueidis.ParseURL] makes options from redis://user:password@host:port/db, with ?addr=host2:port2 for a
// cluster, and with ?addr=host2:port2&master_set=NAME for sentinels. With rediss:// they have TLS, except for
// the connections to sentinels, and all certificates must be for the first host. If each server has its own
// name, set TLSConfig.ServerName to "".
//
// A Redis user needs these rights, which store/REDIS.md explains:
//
//	one server     ACL SETUSER latchkey on >PASSWORD resetkeys ~latchkey:* resetchannels -@all +ping +get +mget +getrange +set +del +pexpire +pttl +rename +time +eval +evalsha
//	logins         +zscore +zadd +zrem +zcard +zrange +zremrangebyscore
//	notifications  +publish +subscribe +pubsub|numsub &latchkey:wake:*
//	Sentinel       +role
//	cluster        +cluster|slots +cluster|shards +asking, and for notifications +spublish +ssubscribe &latchkey:wake:*
//
// Rueidis asks a single server for cluster|slots. A refusal is harmless, but appears in ACL LOG.
//
// # What the store sets
//
// Rueidis repeats and caches nothing. All round trips to a node share one connection, unless PipelineMultiplex
// is set. While requests wait for sessions of other processes, notifications have a connection of their own; on
// a cluster one for each of these sessions. Buffers are 32 KiB, unless set. A connection without a reply for a
// quarter longer than [store.Options].Timeout is closed, unless Dialer.KeepAlive and ConnWriteTimeout are set.
// BlockingPoolSize has no effect. All other options stay as they are. If an option cannot work, [Open] returns
// an error. Behind Sentinel, a new client of rueidis asks the sentinels whenever a round trip has failed.
//
// # What a cluster costs
//
// An exclusive request makes two round trips, as elsewhere. Renew and Login, which change the ID, use two
// slots. After a master has died, its sessions are unavailable until a replica has taken over, and about a
// second longer. Writes that were answered but not yet replicated are lost, as with any Redis.
//
// # A limit of rueidis
//
// Rueidis ends the process if it gets a reply without a command. Redis never sends such a reply, but a broken
// proxy may, by sending a reply twice.
package rueidisstore

import (
	"cmp"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/rueidis"
)

// Open returns a store on the Redis that c describes. Open does not connect, so a process may start before
// its Redis does; see [store.Store.Ping]. [store.Store.Close] closes the store's connections.
func Open(c rueidis.ClientOption, o store.Options) (*store.Store, error) {
	client, err := newClient(c, cmp.Or(o.Timeout, locker.DefaultTimeout))
	if err != nil {
		return nil, err
	}
	st := store.NewOn(owned{client}, o)
	if err := records.Of(st).Err(); err != nil {
		return nil, err
	}
	return st, nil
}

// owned is a transport.Owned.
type owned struct{ *client }

func (c owned) CloseWithStore() error {
	c.maker.close()
	return nil
}

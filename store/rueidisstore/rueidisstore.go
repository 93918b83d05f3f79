// Package rueidisstore makes a [store.Store] over [github.com/redis/rueidis]: for one server, for
// Sentinel, and for a Redis Cluster, where sessions are spread over all masters. It is a module of
// its own, so that nobody gets a client that they do not use.
//
//	go get github.com/a2139e8d/latchkey github.com/a2139e8d/latchkey/store/rueidisstore
//
// All promises of package store hold, the same on each topology.
//
// # Where Redis is
//
//   - One server: its address, alone, in InitAddress.
//   - A cluster: addresses of some of its nodes, of which one must answer when the store is first
//     used. SelectDB must be 0.
//   - Sentinel: addresses of the sentinels, and Sentinel.MasterSet. The sentinels have a user,
//     password and TLS of their own, in ClientOption.Sentinel.
//
// [rueidis.ParseURL] makes options of redis://user:password@host:port/db, with ?addr=host2:port2 of
// a cluster, and with ?addr=host2:port2&master_set=NAME of sentinels. With rediss:// they have TLS,
// except for the connections to sentinels, and all certificates must be for the first host: where each
// server has its own, set TLSConfig.ServerName to "".
//
// A Redis user needs the rights that store/REDIS.md names, and more on some topologies:
//
//	one server   ACL SETUSER latchkey on >PASSWORD resetkeys ~latchkey:* resetchannels -@all +ping +get +mget +getrange +set +del +pexpire +pttl +rename +time +eval +evalsha
//	to be woken  +publish +subscribe +unsubscribe +pubsub|numsub &latchkey:wake:*
//	Sentinel     +role
//	cluster      +cluster|slots +cluster|shards +asking, and to be woken +spublish +ssubscribe +sunsubscribe
//
// # What the store sets
//
// Rueidis repeats nothing by itself and caches nothing, and all exchanges with a node share one
// connection, unless PipelineMultiplex is set. Buffers are 32 KiB, unless set. A connection that
// has not answered for a quarter longer than [store.Options].Timeout is given up, unless
// Dialer.KeepAlive and ConnWriteTimeout say otherwise. All else stays as it is set, and what cannot work is an error of
// [Open].
//
// # What a cluster costs
//
// An exclusive request is two round trips, as elsewhere. Renew and Login, which change the id, use
// two slots. After a master has died, its sessions are unavailable until a replica has taken over
// and about a second more; what was answered and not yet replicated is lost, as with any Redis.
//
// # What rueidis does not do
//
// It ends the process where a reply comes that nobody has asked for. A Redis does not send one, but
// a broken proxy that sends a reply twice does.
package rueidisstore

import (
	"cmp"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/rueidis"
)

// Open returns a store on the Redis that c describes. It does not connect yet, so a process may
// start before its Redis does; see [store.Store.Ping]. The connections are the store's own, and
// [store.Store.Close] closes them.
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

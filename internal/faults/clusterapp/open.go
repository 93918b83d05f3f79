package main

import (
	"cmp"
	"fmt"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/goredisstore"
	"github.com/a2139e8d/latchkey/store/rueidisstore"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// open returns a store over the client that c names, with the defaults of that client, except for the
// settings that its package recommends.
func open(c config) (*store.Store, error) {
	o := store.Options{Lease: c.lease, Timeout: c.timeout}
	switch {
	case c.client == "redigo":
		return store.Open("redis://"+c.addrs[0], o)
	case c.client == "rueidis":
		return rueidisstore.Open(rueidis.ClientOption{
			InitAddress: c.addrs,
			Sentinel:    rueidis.SentinelOption{MasterSet: c.master},
		}, o)
	case c.client == "goredis" && c.master != "":
		return goredisstore.New(redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName:            c.master,
			SentinelAddrs:         c.addrs,
			ContextTimeoutEnabled: true,
		}), o)
	case c.client == "goredis":
		return goredisstore.New(redis.NewClusterClient(&redis.ClusterOptions{
			Addrs:                 c.addrs,
			ContextTimeoutEnabled: true,
			// This is how long go-redis waits for a stopped node when it asks for the slots.
			ReadTimeout: cmp.Or(c.timeout, locker.DefaultTimeout),
		}), o)
	}
	return nil, fmt.Errorf("-client is %q: it must be rueidis, goredis or redigo", c.client)
}

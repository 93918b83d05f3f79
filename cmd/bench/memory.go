package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// measureMemory makes many sessions over HTTP, as visitors do when they log in, and measures how much more
// memory Redis uses. No client is connected then, as its buffers would count. One round is enough: the result
// is the same each time.
func measureMemory(ctx context.Context, c config, server *redisServer, w cell, progress io.Writer) (*result, error) {
	r := newResult(c, w)
	for _, o := range r.peers {
		o.try(func() error { return o.weigh(ctx, environment{cell: w, config: c, server: server, addr: server.addr}) })
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	r.complain(progress)
	return r, nil
}

// weigh adds the one sample.
func (o *outcome) weigh(ctx context.Context, e environment) error {
	if err := e.server.admin.FlushDB(ctx).Err(); err != nil {
		return fmt.Errorf("emptying Redis: %w", err)
	}
	before, err := e.server.memory(ctx)
	if err != nil {
		return err
	}
	if err := o.register(ctx, e); err != nil {
		return err
	}
	after, err := e.server.memory(ctx)
	if err != nil {
		return err
	}
	keys, err := e.server.admin.DBSize(ctx).Result()
	if err != nil {
		return fmt.Errorf("counting keys: %w", err)
	}
	if int(keys) != e.sessions {
		return fmt.Errorf("%d keys for %d sessions", keys, e.sessions)
	}
	o.samples = append(o.samples, sample{memory: float64(after-before) / float64(e.sessions)})
	return nil
}

// register makes the sessions.
func (o *outcome) register(ctx context.Context, e environment) error {
	f, err := startFleet(ctx, o.peer.binary, app.Config{Peer: o.peer.Name, Redis: e.addr, Key: key}, e.n)
	if err != nil {
		return err
	}
	defer f.close()
	clients, err := dialCrowd(ctx, f, visitors)
	if err != nil {
		return err
	}
	defer clients.close()
	defer clients.watch(stallAfter)()
	_, err = clients.each(func(i int, c *client) error {
		for n := i; n < e.sessions; n += visitors {
			c.cookie = ""
			if _, err := c.call(http.MethodPost, "/login"); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// memory returns how many bytes Redis uses, once no client is connected.
func (s *redisServer) memory(ctx context.Context) (bytes int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		info, err := s.admin.InfoMap(ctx, "clients", "memory").Result()
		if err != nil {
			return 0, fmt.Errorf("asking Redis for its memory: %w", err)
		}
		if info["Clients"]["connected_clients"] == "1" { // this program
			return strconv.Atoi(info["Memory"]["used_memory"])
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("clients of Redis do not disconnect: %w", context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

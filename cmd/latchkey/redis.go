package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/rueidisstore"
	"github.com/redis/rueidis"
)

// A redis is the connection to the sessions. It ends with the process: closing it properly would mean waiting
// for a Redis that may be silent.
type redis struct {
	client rueidis.Client
	master string // of a replica
	link   string // of a replica to its master: its state
	option rueidis.ClientOption
	o      store.Options

	hasReplied atomic.Bool // any server, to anything

	mu sync.Mutex
	// dialled are nodes of a cluster that client does not know, by their addresses.
	dialled map[string]rueidis.Client
}

// tuned returns options that suit the few commands of this program.
func (r *redis) tuned() rueidis.ClientOption {
	c := r.option
	c.DisableCache, c.DisableRetry = true, true
	c.AlwaysPipelining, c.PipelineMultiplex = true, -1 // so that cancelling a context ends a call
	c.Dialer.Timeout, c.ConnWriteTimeout = r.o.Timeout, r.o.Timeout
	c.Sentinel.Dialer.Timeout = r.o.Timeout
	return c
}

// connect connects to Redis. Its error is one line. Without a connection there is no client.
func connect(ctx context.Context, o *options) (*redis, error) {
	r := &redis{option: o.redis, o: store.Options{Prefix: o.prefix, Timeout: o.timeout}}
	if len(o.keys) > 0 {
		// Plain records are accepted, too: no decision depends on their content.
		r.o.Encryption = store.Encryption{Keys: o.keys, AcceptPlain: true}
	}
	r.option.DialCtxFn = endingWith(ctx, greeting(r.option))
	if r.option.Sentinel.MasterSet != "" {
		r.option.InitAddress = r.sentinelsThatReplyFirst(ctx)
	}
	client, err := newClient(ctx, r.tuned())
	if err != nil && r.option.Sentinel.MasterSet != "" {
		return r, r.explainedBehind(ctx, err)
	}
	if err != nil {
		return r, r.explainedOfEach(ctx, err)
	}
	r.client = client
	r.hasReplied.Store(true)
	if client.Mode() == rueidis.ClientModeCluster && len(client.Nodes()) == 0 {
		// One node of the URL was away, and rueidis looked for the others before it was connected to any. A command
		// with a key makes it look again.
		r.doAll(ctx, client, [][]string{{"GET", o.prefix}})
	}
	if client.Mode() == rueidis.ClientModeStandalone {
		if err := r.isServer(ctx); err != nil {
			return nil, r.explained(err)
		}
	}
	return r, nil
}

// endingWith returns a dialer of connections that are closed when ctx ends. A call that connects first ignores its own
// context from when it has dialled until the server has greeted it, which a frozen server never does.
func endingWith(ctx context.Context, dial dialer) dialer {
	return func(call context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		conn, err := dial(call, address, d, config)
		if err != nil {
			return nil, err
		}
		return &ending{conn, context.AfterFunc(ctx, func() { _ = conn.Close() })}, nil
	}
}

type ending struct {
	net.Conn
	forget func() bool
}

func (c *ending) Close() error {
	c.forget()
	return c.Conn.Close()
}

// isServer returns an error if a Sentinel replies instead of a server, or a node of a cluster. It notes the master of a
// replica.
func (r *redis) isServer(ctx context.Context) error {
	if err := r.standsAlone(ctx); err != nil {
		return err
	}
	reply, err := r.do(ctx, r.client, "ROLE").ToArray()
	if isRefused(err) { // the right to ask is missing, and not needed
		return r.do(ctx, r.client, "PING").Error()
	}
	if len(reply) == 0 {
		return err
	}
	switch role, _ := reply[0].ToString(); {
	case role == "sentinel":
		return errors.New("this is a Sentinel: add ?master_set=NAME to its URL")
	case role == "slave" && len(reply) > 3:
		host, _ := reply[1].ToString()
		port, _ := reply[2].AsInt64()
		r.master = net.JoinHostPort(host, strconv.FormatInt(port, 10))
		r.link, _ = reply[3].ToString()
	}
	return nil
}

// standsAlone returns an error for a node of a cluster: the client takes it for a server of its own if the user may not ask
// for the other nodes. No user needs a right for HELLO.
func (r *redis) standsAlone(ctx context.Context) error {
	hello, _ := r.do(ctx, r.client, "HELLO").AsMap()
	mode := hello["mode"]
	if is, _ := mode.ToString(); is != "cluster" {
		return nil
	}
	if err := r.do(ctx, r.client, "CLUSTER", "SLOTS").Error(); err != nil {
		return fmt.Errorf("this is a node of a cluster, and it does not say where the others are: %w", err)
	}
	return errors.New("this is a node of a cluster, and the others are not known yet: try again")
}

// current returns an error for a replica that does not hear its master: what it has may be old, or nothing.
func (r *redis) current() error {
	if r.master == "" || r.link == "connected" {
		return nil
	}
	return r.explained(fmt.Errorf("this is a replica, and its link to its master is in state %q: use the address of the master, %s", r.link, r.master))
}

// writable returns an error for a replica, which is good enough for locks, stats and doctor.
func (r *redis) writable() error {
	if r.master == "" {
		return nil
	}
	return r.explained(fmt.Errorf("this is a replica: use the address of its master, %s", r.master))
}

// newClient is rueidis.NewClient with a context.
func newClient(ctx context.Context, c rueidis.ClientOption) (rueidis.Client, error) {
	type outcome struct {
		client rueidis.Client
		err    error
	}
	done := make(chan outcome, 1)
	go func() { // ends by its timeouts
		client, err := rueidis.NewClient(c)
		done <- outcome{client, err}
	}()
	select {
	case o := <-done:
		return o.client, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// do sends one command, and waits for at most --timeout.
func (r *redis) do(ctx context.Context, to rueidis.Client, words ...string) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	return to.Do(ctx, to.B().Arbitrary(words...).Build())
}

// doAll sends commands in one write. On a cluster it sends each command to the node of its key, which must
// come right after the command's name.
func (r *redis) doAll(ctx context.Context, to rueidis.Client, commands [][]string) []rueidis.RedisResult {
	if len(commands) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	all := make([]rueidis.Completed, len(commands))
	for i, words := range commands {
		all[i] = to.B().Arbitrary(words...).Build()
		if to.Mode() == rueidis.ClientModeCluster {
			all[i] = all[i].SetSlot(words[1])
		}
	}
	return to.DoMulti(ctx, all...)
}

// store returns the program's store, which the caller must close.
func (r *redis) store() (*store.Store, error) {
	if err := r.writable(); err != nil {
		return nil, err
	}
	return rueidisstore.Open(r.option, r.o)
}

// ofStore explains an error of the store, which has used a key.
func (j *job) ofStore(err error, key string) error {
	if errors.Is(err, store.ErrUnavailable) && j.ctx.Err() == nil {
		return j.redis.explainedFor(j.ctx, err, key)
	}
	return err
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*rueidis.RedisError](err)
	return ok
}

// isLockedOut reports whether the password or the user is wrong, or missing.
func isLockedOut(err error) bool {
	refused, ok := errors.AsType[*rueidis.RedisError](err)
	return ok && (strings.HasPrefix(refused.Error(), "NOAUTH") || strings.HasPrefix(refused.Error(), "WRONGPASS"))
}

func isNoPermission(err error) bool {
	return isRefused(err) && strings.HasPrefix(err.Error(), "NOPERM")
}

func isWrongType(err error) bool {
	refused, ok := errors.AsType[*rueidis.RedisError](err)
	return ok && strings.HasPrefix(refused.Error(), "WRONGTYPE")
}

// hasMoved reports whether a key has gone to another node since it was found.
func hasMoved(err error) bool {
	return isRefused(err) && (strings.HasPrefix(err.Error(), "MOVED ") || strings.HasPrefix(err.Error(), "ASK "))
}

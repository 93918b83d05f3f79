package goredisstore

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
	"weak"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/go-redis/v9"
)

// A cluster is a [transport.ClusterClient].
//
// The pipelines of a ClusterClient are not used. They send each command to the node of its key, and a command
// without a key, like PING, to any node; and they follow redirections one by one, so that commands change
// their order. Here a round trip goes as a whole to the node of its slot, and to another node only if none of
// its commands was executed.
type cluster struct {
	redis   *redis.ClusterClient
	timeout time.Duration
	// nodes are the nodes that a redirection may name, as long as go-redis has them: address →
	// weak.Pointer[redis.Client].
	nodes sync.Map
}

func newCluster(c *redis.ClusterClient, timeout time.Duration) *cluster {
	own := &cluster{redis: c, timeout: timeout}
	c.OnNewNode(own.know)
	return own
}

func (c *cluster) know(node *redis.Client) { c.nodes.Store(node.Options().Addr, weak.Make(node)) }

// known returns the client of the node at an address, or nil.
func (c *cluster) known(address string) *redis.Client {
	node, _ := c.nodes.Load(address)
	pointer, _ := node.(weak.Pointer[redis.Client])
	return pointer.Value()
}

// IsCluster is described in [transport.ClusterClient].
func (c *cluster) IsCluster() bool { return true }

// Do is described in [transport.Client].
func (c *cluster) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	replies, _, err := c.DoRouted(ctx, key, commands...)
	return replies, err
}

var _ transport.RoutedClient = (*cluster)(nil)

// DoRouted is described in [transport.RoutedClient].
func (c *cluster) DoRouted(ctx context.Context, key string, commands ...transport.Command) (replies []any, route transport.Route, err error) {
	ctx, cancel, err := bounded(ctx, c.timeout)
	if err != nil {
		return nil, route, err
	}
	defer cancel()
	route.Database = "0" // which go-redis uses on a cluster
	node, err := c.redis.MasterForKey(ctx, key)
	if err != nil {
		return nil, route, refused(err)
	}
	route.Node = node.Options().Addr
	replies, err = exchange(ctx, node, commands)
	c.doubt(ctx, replies, err)
	for range maxRedirects {
		to := redirected(commands, replies)
		if node = c.follow(ctx, to, node, key); node == nil {
			break
		}
		next, err := exchange(ctx, node, to.sent(commands))
		if errors.Is(err, redis.ErrClosed) { // go-redis has dropped that node in between
			c.nodes.CompareAndDelete(node.Options().Addr, weak.Make(node))
			break
		}
		route.Node = node.Options().Addr
		if to.ask {
			route.Asked++
		} else {
			route.Moved++
		}
		if c.doubt(ctx, next, err); err != nil {
			return nil, route, err
		}
		replies = to.answered(next)
	}
	return replies, route, err
}

// follow returns the client of the node that a redirection names, or nil.
func (c *cluster) follow(
	ctx context.Context, to redirection, from *redis.Client, key string,
) *redis.Client {
	if to.address == "" {
		return nil
	}
	host, port, _ := net.SplitHostPort(to.address)
	if host == "" { // the host of the node that redirects
		host, _, _ = net.SplitHostPort(from.Options().Addr)
	}
	address := net.JoinHostPort(host, port)
	if node := c.known(address); node != nil {
		return node
	}
	// Go-redis knew the node before New, or does not know it yet, since a new node has no slots. In that case
	// go-redis learns of the node by following the same redirection.
	_ = c.redis.ForEachShard(ctx, func(_ context.Context, node *redis.Client) error {
		c.know(node)
		return nil
	})
	_ = c.redis.PTTL(ctx, key).Err()
	return c.known(address)
}

// doubt makes go-redis ask which node has which slot, if a round trip shows that this may have changed.
// Go-redis asks in the background, and at most every 200 ms.
func (c *cluster) doubt(ctx context.Context, replies []any, err error) {
	changed := err != nil
	for _, reply := range replies {
		if refusal, ok := reply.(error); ok {
			_, moved := redis.IsMovedError(refusal)
			changed = changed || moved || redis.IsClusterDownError(refusal) || redis.IsReadOnlyError(refusal)
		}
	}
	if changed {
		c.redis.ReloadState(ctx)
	}
}

// Subscribe is described in [transport.Client].
func (c *cluster) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	return c.subscribe(ctx, (*redis.PubSub).Subscribe, channel)
}

// SubscribeShard is described in [transport.ClusterClient].
func (c *cluster) SubscribeShard(ctx context.Context, channel string) (transport.Subscription, error) {
	return c.subscribe(ctx, (*redis.PubSub).SSubscribe, channel)
}

func (c *cluster) subscribe(
	ctx context.Context, by subscribing, channel string,
) (transport.Subscription, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	node, err := c.redis.MasterForKey(ctx, channel)
	if err != nil {
		return nil, refused(err)
	}
	s, err := subscribe(ctx, node, by, channel)
	for range maxRedirects {
		if err == nil {
			break
		}
		c.redis.ReloadState(ctx)
		moved, _ := errors.AsType[redis.Error](err)
		if node = c.follow(ctx, redirection{address: movedTo(moved)}, node, channel); node == nil {
			break
		}
		s, err = subscribe(ctx, node, by, channel)
	}
	return s, err
}

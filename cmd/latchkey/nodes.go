package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// nodes returns all servers of a cluster, masters first, or the only server.
func (r *redis) nodes(ctx context.Context) ([]*node, error) { return r.find(ctx, false) }

// find returns all servers, or only the masters, which have the slots.
func (r *redis) find(ctx context.Context, mastersOnly bool) ([]*node, error) {
	known := r.client.Nodes()
	if r.client.Mode() != rueidis.ClientModeCluster {
		for address, client := range known {
			return []*node{{redis: r, address: address, client: client}}, nil
		}
	}
	lines, err := r.clusterNodes(ctx)
	if err != nil {
		return nil, err
	}
	var all []*node
	for _, line := range lines {
		if mastersOnly && !line.owns || line.gone || line.master && !line.owns && !line.failed { // a master that has failed may have lost its slots
			continue
		}
		n := &node{redis: r, address: line.address, client: known[line.address], replica: !line.owns}
		if n.client == nil { // known by its name, or not yet: rueidis hides a replica that is new
			n.client = known[line.named]
		}
		if n.client == nil {
			n.client = r.dialled[line.address]
		}
		if n.client == nil {
			n.dial(ctx)
		}
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *node) int {
		if a.replica != b.replica {
			return map[bool]int{false: -1, true: 1}[a.replica]
		}
		return strings.Compare(a.address, b.address)
	})
	return all, nil
}

// masters returns the servers that have sessions.
func (r *redis) masters(ctx context.Context) ([]*node, error) {
	all, err := r.find(ctx, true)
	for _, n := range all {
		err = cmp.Or(err, n.err)
	}
	return all, err
}

// dial connects to one node of a cluster.
func (n *node) dial(ctx context.Context) {
	c := n.redis.tuned()
	c.InitAddress, c.ForceSingleClient = []string{n.address}, true
	client, err := newClient(ctx, c)
	if n.client, n.err = client, n.explained(err); err != nil {
		n.client = nil
		return
	}
	if n.redis.dialled == nil {
		n.redis.dialled = make(map[string]rueidis.Client)
	}
	n.redis.dialled[n.address] = client // for watch, which comes here again
}

// A clusterLine describes a node, as the cluster does.
type clusterLine struct {
	address, named string // host:port, and the same with the host's name
	master, owns   bool   // a master, and with slots
	failed, gone   bool   // does not reply; has left
	moving         int    // slots that are moving
}

// clusterNodes returns the view of the first node that replies.
func (r *redis) clusterNodes(ctx context.Context) ([]clusterLine, error) {
	err := errors.New("the cluster has no nodes")
	for asked, client := range r.client.Nodes() {
		var text string
		if text, err = r.do(ctx, client, "CLUSTER", "NODES").ToString(); err == nil {
			return parseNodes(text, asked), nil
		}
	}
	return nil, r.explained(err)
}

// parseNodes reads the reply to CLUSTER NODES. A node is
//
//	<id> <ip:port@bus[,name]> <flags> <master> <ping> <pong> <epoch> <link> <slot>...
//
// A node that is alone does not know its own ip. It is that of asked, the address of the node that replied.
func parseNodes(text, asked string) (all []clusterLine) {
	askedHost, _, _ := net.SplitHostPort(asked)
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 8 {
			continue
		}
		address, name, _ := strings.Cut(words[1], ",")
		address, _, _ = strings.Cut(address, "@")
		if i := strings.LastIndexByte(address, ':'); i >= 0 { // an IPv6 address has no brackets here
			address = net.JoinHostPort(cmp.Or(address[:i], askedHost), address[i+1:])
		}
		flags := strings.Split(words[2], ",")
		l := clusterLine{address: address, master: slices.Contains(flags, "master"),
			failed: slices.Contains(flags, "fail"), gone: slices.Contains(flags, "noaddr") || slices.Contains(flags, "handshake")}
		if name, _, _ = strings.Cut(name, ","); name != "" {
			l.named = name + address[strings.LastIndexByte(address, ':'):]
		}
		for _, slot := range words[8:] {
			if strings.HasPrefix(slot, "[") {
				l.moving++
			} else {
				l.owns = true
			}
		}
		all = append(all, l)
	}
	return all
}

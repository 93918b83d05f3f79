package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/redis/rueidis"
)

// A node is one server.
type node struct {
	*redis
	line    clusterLine // in a cluster
	address string
	client  rueidis.Client
	err     error // why it cannot be asked, or nil
	replica bool

	replicas []string // their IDs in the cluster
}

// An away is a master that could not be asked, or only in part.
type away struct {
	Address string `json:"address"`
	Why     string `json:"why"`
}

// found is the error of a command that has shown which masters are away.
func found(gone []away) error {
	if len(gone) > 0 {
		return errFound
	}
	return nil
}

// printAway prints a line for each master that is away.
func printAway(w io.Writer, gone []away) {
	for _, a := range gone {
		fmt.Fprintf(w, "%s  away: %s\n", printable(a.Address), printable(a.Why))
	}
}

// each calls f for one master after another: for those of a cluster, or for the only server. If a master cannot be
// asked, or f returns an error, the master is in the result, with the reason, and f must leave out what it has found
// there. If no master could be asked, that is an error. If slots move meanwhile, f may miss keys, or find them twice: then
// j.slotsMoved is set.
func (j *job) each(masters []*node, f func(n *node) error) ([]away, error) {
	gone, failures := []away{}, []error{}
	for _, n := range masters {
		err := n.err
		if err == nil {
			err = f(n)
		}
		if err == nil {
			err = n.serves(j.ctx)
		}
		if j.ctx.Err() != nil {
			return nil, j.ctx.Err()
		}
		if err != nil {
			err := n.explained(err)
			failures, gone = append(failures, err), append(gone, away{n.address, reason(err)})
		}
	}
	if len(failures) == len(masters) {
		return nil, together(failures)
	}
	j.slotsMoved = j.redis.slotsMoved(j.ctx, masters, gone)
	if j.ctx.Err() != nil {
		return nil, j.ctx.Err()
	}
	return gone, nil
}

// slotsMoved reports whether slots have moved to other masters since these were found, or may move now. It asks those that
// are not away. In a failover all slots of a master go to one of its replicas, which has the keys: that is no move. A replica
// that is newer than the first view counts as a move.
func (r *redis) slotsMoved(ctx context.Context, before []*node, gone []away) bool {
	if r.client.Mode() != rueidis.ClientModeCluster {
		return false
	}
	views, known := make(map[string]view), false
	for _, n := range before {
		if n.err == nil && !slices.ContainsFunc(gone, func(a away) bool { return a.Address == n.address }) {
			text, err := n.do(ctx, "CLUSTER", "NODES").ToString()
			views[n.address] = view{parseNodes(text, n.address), err}
			known = known || err == nil
		}
	}
	if !known { // the right may be missing there
		all, err := r.clusterViews(ctx)
		if err != nil {
			return true
		}
		views = all
	}
	now := newest(views)
	return slices.ContainsFunc(before, func(n *node) bool {
		seen := views[n.address]
		return n.line.moving+seen.moving() > 0 || n.line.owns() && !n.keptSlots(seen.lines, now)
	})
}

// keptSlots reports whether a master, or a replica of it, has the slots that the master had. A master itself is the first to
// know of a move: of several views of the cluster, the newest may not show it yet.
func (n *node) keptSlots(own, now []clusterLine) bool {
	for _, l := range own {
		if l.self && l.master && l.id == n.line.id {
			return slices.Equal(l.shares, n.line.shares)
		}
	}
	return slices.ContainsFunc(now, func(l clusterLine) bool {
		return slices.Equal(l.shares, n.line.shares) && (l.id == n.line.id || slices.Contains(n.replicas, l.id))
	})
}

// warnOfMoves says that numbers of all masters may be wrong.
func (j *job) warnOfMoves() {
	if j.slotsMoved {
		fmt.Fprintln(j.out.stderr, "latchkey: slots moved between masters meanwhile, so these numbers may be too high or too low; run it again when that has ended; if it does not end, latchkey doctor says what to do")
	}
}

// countKeys returns how many keys some masters have, for a progress bar. A master that does not reply is not asked
// again.
func (j *job) countKeys(masters []*node) (keys int64) {
	for _, n := range masters {
		if n.err != nil {
			continue
		}
		size, err := n.do(j.ctx, "DBSIZE").AsInt64()
		if !isRefused(err) { // it may be renamed, or not permitted: then there is no total
			n.err = n.explained(err)
		}
		keys += size
	}
	return keys
}

// serves returns an error if a node of a cluster does not serve its slots, so that what was found there is not all. A
// node that has become a replica has redirected some commands. A node that replies CLUSTERDOWN still runs SCAN, so it
// is asked for a key of its own.
func (n *node) serves(ctx context.Context) error {
	if n.redis.client.Mode() != rueidis.ClientModeCluster {
		return nil
	}
	replies := n.redis.doAll(ctx, n.client, [][]string{{"ROLE"}, {"GETRANGE", n.ownKey(), "0", "0"}})
	if err := replies[1].Error(); err != nil && !isWrongType(err) && !hasMoved(err) && !isNoPermission(err) {
		return err
	}
	role, err := replies[0].ToArray()
	switch {
	case isRefused(err): // the right to ask is missing
		return nil
	case err != nil:
		return err
	case len(role) > 0:
		if is, _ := role[0].ToString(); is == "slave" {
			return errDemoted
		}
	}
	return nil
}

// owns reports whether a key is on this node: on the only one, or in one of its slots.
func (n *node) owns(key string) bool {
	return n.redis.client.Mode() != rueidis.ClientModeCluster || n.line.has(lease.Slot(key))
}

// ownKey returns a key in one of the node's slots. No session has it.
func (n *node) ownKey() (key string) {
	for i := range 20 * lease.Slots { // enough for a node with one slot
		key = n.redis.o.Prefix + "{" + strconv.Itoa(i) + "}"
		if n.line.has(lease.Slot(key)) {
			break
		}
	}
	return key
}

var errDemoted = errors.New("it has just become a replica: a failover is under way")

// masters returns the servers that have sessions, at least one. A master that is away is among them.
func (r *redis) masters(ctx context.Context) ([]*node, error) {
	all, err := r.find(ctx, true)
	if err == nil && len(all) == 0 {
		err = r.explained(errors.New("no master of the cluster has a slot"))
	}
	return all, err
}

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
	views, err := r.clusterViews(ctx)
	if err != nil {
		return nil, err
	}
	var all []*node
	var dials sync.WaitGroup
	lines, replicas := newest(views), make(map[string][]string)
	for _, line := range lines {
		replicas[line.of] = append(replicas[line.of], line.id)
	}
	for _, line := range lines {
		if mastersOnly && !line.owns() || line.gone || line.master && !line.owns() && !line.failed { // a master that has failed may have lost its slots
			continue
		}
		n := &node{redis: r, line: line, address: line.address, replica: !line.owns(), replicas: replicas[line.id]}
		for _, name := range []string{line.address, line.named} { // known by one of them, or not yet: rueidis hides a replica that is new
			if view, asked := views[name]; asked {
				n.client = known[name]
				n.err = n.explained(view.whyAway(n))
				n.line.moving = view.moving()
			}
		}
		if n.client == nil {
			n.client = r.dialledTo(line.address)
		}
		if n.client == nil {
			dials.Go(func() { n.dial(ctx) })
		}
		all = append(all, n)
	}
	dials.Wait()
	slices.SortFunc(all, func(a, b *node) int {
		switch {
		case b.replica && !a.replica:
			return -1
		case a.replica && !b.replica:
			return 1
		}
		return strings.Compare(a.address, b.address)
	})
	return all, nil
}

// dial connects to one node of a cluster.
func (n *node) dial(ctx context.Context) {
	c := n.redis.tuned()
	c.InitAddress, c.ForceSingleClient = []string{n.address}, true
	client, err := newClient(ctx, c)
	if err != nil {
		n.err = n.explained(err)
		return
	}
	n.client = client
	n.redis.mu.Lock()
	defer n.redis.mu.Unlock()
	if n.redis.dialled == nil {
		n.redis.dialled = make(map[string]rueidis.Client)
	}
	n.redis.dialled[n.address] = client // for watch, which comes here again
}

func (r *redis) dialledTo(address string) rueidis.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dialled[address]
}

func (n *node) do(ctx context.Context, words ...string) rueidis.RedisResult {
	return n.redis.do(ctx, n.client, words...)
}

// explained names the node, and says what to do.
func (n *node) explained(err error) error {
	switch n.redis.client.Mode() {
	case rueidis.ClientModeCluster:
		return n.redis.explainedAt(err, n.address)
	case rueidis.ClientModeSentinel:
		return n.redis.explainedOfMaster(err, n.address)
	}
	return n.redis.explained(err)
}

// explainedFor is explained for a command on a key. On a cluster it names the master of the key, as far as the
// cluster knows, and asks that master again: a store tries until its timeout, and may have forgotten why by then.
func (r *redis) explainedFor(ctx context.Context, err error, key string) error {
	if err == nil || r.client.Mode() == rueidis.ClientModeStandalone {
		return r.explained(err)
	}
	if r.client.Mode() == rueidis.ClientModeSentinel {
		return r.explainedBehind(ctx, err)
	}
	if isTimeout(err) { // the command has waited long enough: nodes that reply do so soon
		soon, cancel := context.WithTimeout(ctx, r.o.Timeout/4)
		defer cancel()
		ctx = soon
	}
	masters, unknown := r.masters(ctx)
	if unknown != nil {
		return r.explained(err)
	}
	for _, n := range masters {
		if !n.line.has(lease.Slot(key)) {
			continue
		}
		now := n.err
		if now == nil {
			now = n.do(ctx, "GETRANGE", key, "0", "0").Error()
		}
		if now == nil || isWrongType(now) || hasMoved(now) || isNoPermission(now) {
			now = err
		}
		return n.explained(now)
	}
	return r.explained(err)
}

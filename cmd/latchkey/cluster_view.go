package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A view is a cluster as one of its nodes sees it, or why that node has not replied.
type view struct {
	lines []clusterLine
	err   error
}

// A clusterLine describes a node, as the cluster does.
type clusterLine struct {
	id             string
	address, named string // host:port, and the same with the host's name
	self           bool   // the node that has replied
	master         bool
	of             string  // of a replica: the ID of its master
	noFailover     bool    // it never takes over
	failed, gone   bool    // does not reply; has left
	shares         []share // of the slots, that it owns
	moving         int     // slots that are moving
	epoch          int64   // of the claim to the slots: a failover makes it larger
}

// A share is the slots from first to last.
type share struct{ first, last int }

func (l clusterLine) owns() bool { return len(l.shares) > 0 }

func (l clusterLine) slots() (n int) {
	for _, s := range l.shares {
		n += s.last - s.first + 1
	}
	return n
}

func (l clusterLine) has(slot int) bool {
	return slices.ContainsFunc(l.shares, func(s share) bool { return s.first <= slot && slot <= s.last })
}

// clusterViews asks all known nodes at once, so that several silent nodes cost one timeout. It returns an error if
// none has replied.
func (r *redis) clusterViews(ctx context.Context) (map[string]view, error) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	views, replied := make(map[string]view), false
	err := errors.New("the cluster has no nodes")
	for asked, client := range r.client.Nodes() {
		asking.Go(func() {
			text, failed := r.do(ctx, client, "CLUSTER", "NODES").ToString()
			mu.Lock()
			defer mu.Unlock()
			views[asked] = view{parseNodes(text, asked), failed}
			if failed == nil {
				replied = true
			} else {
				err = failed
			}
		})
	}
	asking.Wait()
	if replied {
		return views, nil
	}
	return nil, r.explained(err)
}

// newest returns the view to believe: during a failover, and after it, some nodes have an older one.
func newest(views map[string]view) (best []clusterLine) {
	rank := func(lines []clusterLine) (slots int, epoch int64) {
		for _, l := range lines {
			slots += l.slots()
			if l.owns() {
				epoch = max(epoch, l.epoch)
			}
		}
		return slots, epoch
	}
	for _, v := range views {
		slots, epoch := rank(v.lines)
		if most, latest := rank(best); cmp.Or(cmp.Compare(slots, most), cmp.Compare(epoch, latest)) > 0 || best == nil {
			best = v.lines
		}
	}
	return best
}

// whyAway returns why a node cannot be asked, as far as its view says that. A node without the right to ask for
// the view has replied.
func (v view) whyAway(n *node) error {
	if v.err != nil && !isNoPermission(v.err) {
		return v.err
	}
	demoted := slices.ContainsFunc(v.lines, func(l clusterLine) bool { return l.self && !l.master })
	if demoted && !n.replica {
		return errDemoted
	}
	return nil
}

// moving returns how many slots are on the move from or to the node that has replied: it shows only its own.
func (v view) moving() (n int) {
	for _, line := range v.lines {
		n += line.moving
	}
	return n
}

// parseNodes reads the reply to CLUSTER NODES. A node is
//
//	<id> <ip:port@bus[,name]> <flags> <master> <ping> <pong> <epoch> <link> <slot>...
//
// A node that is alone does not know its own ip. It is that of asked, the address of the node that replied.
func parseNodes(text, asked string) (all []clusterLine) {
	askedHost, _, _ := net.SplitHostPort(asked)
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) { // RESP3 may prefix the text
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
		has := func(flag string) bool { return slices.Contains(flags, flag) }
		l := clusterLine{id: words[0], address: address, self: has("myself"), master: has("master"), of: strings.TrimPrefix(words[3], "-"), noFailover: has("nofailover"), failed: has("fail"), gone: has("noaddr") || has("handshake")}
		l.epoch, _ = strconv.ParseInt(words[6], 10, 64)
		if name, _, _ = strings.Cut(name, ","); name != "" {
			l.named = name + address[strings.LastIndexByte(address, ':'):]
		}
		l.addSlots(words[8:])
		all = append(all, l)
	}
	return all
}

// addSlots reads slots as in 7, 5461-10922 or [77->-e7d1ee], which is moving.
func (l *clusterLine) addSlots(words []string) {
	for _, word := range words {
		if strings.HasPrefix(word, "[") {
			l.moving++
			continue
		}
		from, to, _ := strings.Cut(word, "-")
		first, err := strconv.Atoi(from)
		last, _ := strconv.Atoi(cmp.Or(to, from))
		if err == nil {
			l.shares = append(l.shares, share{first, last})
		}
	}
}

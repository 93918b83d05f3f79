package main

import (
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// cluster checks that all slots are served, and that a lost shard affects only its own sessions.
func (d *diagnosis) cluster() {
	if !d.inCluster() {
		return
	}
	for _, setting := range []struct{ name, want, why string }{
		{"cluster-require-full-coverage", "no", "otherwise a lost shard makes all sessions unavailable"},
		{"cluster-allow-reads-when-down", "no", "otherwise a node that is cut off shows outdated sessions"},
	} {
		is, ok := d.config(setting.name)
		switch {
		case !ok:
		case is == setting.want:
			d.say(fine, setting.name, "%s is %s", setting.name, is)
		default:
			d.say(wrong, setting.name, "%s is %s: set it to %s; %s", setting.name, is, setting.want, setting.why).set(setting.name, setting.want)
		}
	}
	text, err := d.node.do(d.ctx, "CLUSTER", "INFO").ToString()
	if err != nil {
		d.say(note, "cluster", "its view of the cluster is not checked: CLUSTER INFO is refused (%v)", err)
		return
	}
	d.info = parseInfo(text)
	d.slots()
	d.halfMoved()
}

// slots says why a node does not serve all slots. redis-cli --cluster fix is only for slots that belong to no node:
// while a master is away, it refuses, or gives up that master's sessions.
func (d *diagnosis) slots() {
	const name = "cluster_state"
	state, free := d.info[name], lease.Slots-d.number("cluster_slots_assigned")
	lost := d.number("cluster_slots_fail") + d.number("cluster_slots_pfail")
	switch {
	case len(d.away) > 0:
		d.say(wrong, name, "cluster_state is %s, and %s away: bring %s back, %s", state, isOrAre(d.away), itOrThem(d.away), d.hope)
	case free > 0:
		d.say(wrong, name, "cluster_state is %s, and %d of %d slots belong to no node: their sessions are unavailable", state, free, lease.Slots).
			do(d.clusterFix())
	case lost > 0:
		d.say(wrong, name, "cluster_state is %s, and it does not hear the masters of %d slots, which this program can reach: wait some seconds; "+
			"if this line stays, open the port of the cluster's bus between the nodes", state, lost)
	case state != "ok":
		d.say(wrong, name, "cluster_state is %s, though all slots are served: the node has just started, or a failover is under way: "+
			"wait some seconds, and run doctor again", state)
	default:
		d.say(fine, name, "cluster_state is ok, and all slots are served")
	}
}

// hopeFor says whether replicas can take over from the masters that are away. Most of the masters must vote for them.
func hopeFor(away []string, all []*node) string {
	able := make(map[string]bool) // to replace the master with this ID
	for _, n := range all {
		if n.replica && n.err == nil && !n.line.noFailover {
			able[n.line.of] = true
		}
	}
	masters, replaced := 0, 0
	for _, n := range all {
		if n.replica {
			continue
		}
		if masters++; able[n.line.id] && slices.Contains(away, n.address) {
			replaced++
		}
	}
	switch {
	case replaced == 0:
		return "since no replica replies that could take over"
	case 2*len(away) >= masters:
		return "since no replica can take over by itself while half of the masters or more are away"
	case replaced == len(away):
		return "unless a replica takes over by itself in some seconds"
	}
	return "since not each of them has a replica that replies and could take over"
}

// clusterFix returns the command that gives each slot to one node. It logs in as this program does.
func (d *diagnosis) clusterFix() string {
	command := "redis-cli --cluster fix " + d.entry
	if o := d.redis.option; o.Password != "" {
		command = "REDISCLI_AUTH=PASSWORD " + command
		if o.Username != "" {
			command += " --user " + o.Username
		}
	}
	if d.redis.option.TLSConfig != nil {
		command += " --tls"
	}
	return command
}

// halfMoved checks that no slot is left half-moved to another node.
func (d *diagnosis) halfMoved() {
	text, err := d.node.do(d.ctx, "CLUSTER", "NODES").ToString()
	if err != nil {
		d.say(note, "slots", "half-moved slots are not checked: CLUSTER NODES is refused (%v)", err)
		return
	}
	moving := 0
	for _, line := range parseNodes(text, d.node.address) {
		moving += line.moving // a node shows only its own moving slots
	}
	if moving == 0 {
		return
	}
	what, whose := plural(int64(moving), "slot")+" are", "their"
	if moving == 1 {
		what, whose = "1 slot is", "its"
	}
	if len(d.away) > 0 {
		d.say(wrong, "slots", "%s moving: bring %s back first; then run doctor again", what, strings.Join(d.away, ", "))
		return
	}
	d.say(wrong, "slots", "%s moving: unless that is intended now, finish it; otherwise %s sessions are unavailable", what, whose).
		do(d.clusterFix())
}

// unreachable says what to do about a node of a cluster that does not reply.
func (d *diagnosis) unreachable(err error) {
	why := reason(err)
	switch {
	case isRefused(err), isCrowded(why):
		d.say(wrong, "node", "the node does not let this program in: %s", why)
	case d.node.replica && !isSilent(why):
		d.say(wrong, "node", "the node cannot be reached: %s: start it; or, if it is gone for good, run CLUSTER FORGET %s on all other nodes; "+
			"should it come back after that, run CLUSTER RESET on it", why, d.node.line.id)
	default:
		d.say(wrong, "node", "the node cannot be reached: %s: %s", why, revival(why))
	}
}

// revival says what to do about a server that cannot be reached.
func revival(why string) string {
	if isSilent(why) {
		return "see whether it is stopped or overloaded"
	}
	return "start it"
}

// isSilent reports whether a server that cannot be reached may be running.
func isSilent(why string) bool { return strings.HasPrefix(why, "no reply") }

// isCrowded reports whether a server lets nobody in, since it is at maxclients.
func isCrowded(why string) bool { return strings.HasPrefix(why, "ERR max number of clients") }

// isOrAre returns names with is or are.
func isOrAre(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, ", ") + " are"
}

func itOrThem(names []string) string {
	if len(names) == 1 {
		return "it"
	}
	return "them"
}

package main

import (
	"net"
	"strconv"
	"strings"
)

// A standby is a replica, as a Sentinel sees it: by fields such as flags and master-link-status.
type standby map[string]string

func (s standby) address() string { return net.JoinHostPort(s["ip"], s["port"]) }

// ms returns a time in milliseconds.
func (s standby) ms(field string) int64 {
	n, _ := strconv.ParseInt(s[field], 10, 64)
	return n
}

// aMoment, in milliseconds, is longer than a Sentinel needs to connect to the replicas that run: it tries ten times a
// second, and begins anew after a failover.
const aMoment = 2000

// standbys checks that a replica can take over, and that none is missing.
func (d *diagnosis) standbys(name string) {
	replies, err := d.node.do(d.ctx, "SENTINEL", "REPLICAS", name).ToArray()
	if err != nil {
		d.say(note, "sentinel_replicas", "the replicas are not checked: %s", err)
		return
	}
	d.known = int64(len(replies))
	var unable []string
	for _, reply := range replies {
		fields, _ := reply.AsStrMap()
		s := standby(fields)
		if why := d.standby(name, s); why != "" {
			unable = append(unable, s.address()+" "+why)
		}
	}
	able := d.known - int64(len(unable))
	switch {
	case d.known == 0 && d.masterAway():
		d.say(wrong, "sentinel_replicas", "no failover is possible: the master has no replica: bring the master back")
	case d.known == 0:
		d.say(wrong, "sentinel_replicas", "no replica can take over, so no failover is possible: the master has none, as this Sentinel saw it up to 10 s ago: "+
			"add one (REPLICAOF %s %s)", d.info["ip"], d.info["port"])
	case able == 0:
		d.say(wrong, "sentinel_replicas", "no replica can take over, so no failover is possible: %s", strings.Join(unable, ", "))
	default:
		d.say(fine, "sentinel_replicas", "%d of %s can take over", able, plural(d.known, "replica"))
	}
}

// standby examines one replica, and returns why it cannot take over. The rules are those of the Sentinel, by which a
// replica needs no connection to the master: a dead master has none.
func (d *diagnosis) standby(name string, s standby) (unable string) {
	gone := "; or, if it is gone for good, run SENTINEL RESET " + name + " on each Sentinel, one after another"
	if d.masterAway() { // from which a Sentinel learns its replicas again after a reset
		gone = ""
	}
	const check = "sentinel_replica"
	switch address := s.address(); {
	case hasFlag(s["flags"], "disconnected") && (hasFlag(s["flags"], "s_down") || s.ms("last-ok-ping-reply") > aMoment):
		d.say(wrong, check, "the replica %s is down: start it%s", address, gone)
		return "is down"
	case hasFlag(s["flags"], "s_down"):
		d.say(wrong, check, "the replica %s does not reply: see whether it is stopped or overloaded%s", address, gone)
		return "does not reply"
	case s["slave-priority"] == "0":
		d.say(note, check, "the replica %s never takes over, since its replica-priority is 0: unless that is intended, set it to 100", address)
		return "has replica-priority 0"
	case d.isOutdated(s):
		d.say(wrong, check, "the replica %s has had no connection to the master for too long to take over: "+
			"bring the master back; if it runs, check masteruser and masterauth, and the replica's log", address)
		return "has had no connection to the master for too long"
	case s["master-link-status"] != "ok" && s["runid"] != "" && !d.masterAway() && !d.inFailover():
		// Without a runid it was not asked yet.
		d.say(wrong, check, "the replica %s has no connection to the master, as this Sentinel saw it up to 10 s ago: wait 10 s, and run doctor again; "+
			"if this line stays, check masteruser and masterauth, and the replica's log", address)
	}
	return ""
}

// isOutdated reports whether a replica has lost the master for so long that the Sentinel does not let it take over.
func (d *diagnosis) isOutdated(s standby) bool {
	return s.ms("master-link-down-time") > 10*d.number("down-after-milliseconds")+max(0, d.number("s-down-time"))
}

// masterAway reports whether the master does not reply, to the Sentinel or to this program.
func (d *diagnosis) masterAway() bool {
	return hasFlag(d.info["flags"], "s_down", "o_down", "disconnected") || d.unconnected != nil && !isRefused(d.unconnected)
}

func (d *diagnosis) inFailover() bool { return hasFlag(d.info["flags"], "failover_in_progress") }

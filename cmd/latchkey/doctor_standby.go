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

// In milliseconds: a Sentinel lets no replica take over whose last good reply to PING, or to INFO, is older
// (sentinelSelectSlave in Redis's sentinel.c: five periods of PING, three of INFO). While the master is down, it wants a newer
// INFO, and asks for it more often: such a limit would be wrong just after the master has died.
const (
	oldestPing = 5_000
	oldestInfo = 30_000
)

// standbys checks that a replica can take over, and that none is missing.
func (d *diagnosis) standbys(name string) {
	replies, err := d.node.do(d.ctx, "SENTINEL", "REPLICAS", name).ToArray()
	if err != nil {
		d.say(note, "sentinel_replicas", "the replicas are not checked: %s", err)
		return
	}
	d.knownReplicas = int64(len(replies))
	var unable []string
	for _, reply := range replies {
		fields, _ := reply.AsStrMap()
		s := standby(fields)
		if why := d.standby(name, s); why != "" {
			unable = append(unable, s.address()+" "+why)
		}
	}
	able := d.knownReplicas - int64(len(unable))
	switch {
	case d.knownReplicas == 0 && d.masterAway():
		d.say(wrong, "sentinel_replicas", "no failover is possible: the master has no replica: bring the master back")
	case d.knownReplicas == 0:
		d.say(wrong, "sentinel_replicas", "no replica can take over, so no failover is possible: the master has none, as this Sentinel saw it up to 10 s ago: "+
			"add one (REPLICAOF %s %s)", d.info["ip"], d.info["port"])
	case able == 0:
		d.say(wrong, "sentinel_replicas", "no replica can take over, so no failover is possible: %s", strings.Join(unable, ", "))
	default:
		d.say(fine, "sentinel_replicas", "%d of %s can take over", able, plural(d.knownReplicas, "replica"))
	}
}

// standby examines one replica, and returns why it cannot take over. The rules are those of the Sentinel, by which a
// replica needs no connection to the master: a dead master has none.
func (d *diagnosis) standby(name string, s standby) (unable string) {
	gone := "; or, if it is gone for good, run SENTINEL RESET " + name + " on one Sentinel after another, 10 s apart"
	if d.masterAway() { // from which a Sentinel learns its replicas again after a reset
		gone = ""
	}
	const check = "sentinel_replica"
	switch address := s.address(); {
	case s["runid"] == "" && s.ms("role-reported-time") <= oldestInfo && !hasFlag(s["flags"], "s_down") && s.ms("last-ok-ping-reply") <= aMoment:
		return "" // the Sentinel has just learned of it
	case s.ms("last-ping-reply")+aMoment < s.ms("last-ok-ping-reply") && s.ms("last-ping-reply") <= oldestPing:
		d.say(wrong, check, "the replica %s replies, but not as this Sentinel needs it: check its sentinel auth-user and auth-pass, and the rights of that user", address)
		return "refuses the Sentinel"
	case hasFlag(s["flags"], "disconnected") && !hasFlag(s["flags"], "s_down") && s.ms("last-ok-ping-reply") <= aMoment && (d.masterAway() || d.inFailover()):
		return "" // a failover changes the roles of replicas, and closes their connections
	case hasFlag(s["flags"], "disconnected") && !hasFlag(s["flags"], "s_down") && s.ms("last-ok-ping-reply") <= aMoment:
		d.say(wrong, check, "this Sentinel lacks a connection to the replica %s now: run doctor again in some seconds; "+
			"if this line stays, check its sentinel auth-user and auth-pass, and whether that user may subscribe to __sentinel__:hello", address)
		return "has no connection to the Sentinel"
	case hasFlag(s["flags"], "disconnected"):
		d.say(wrong, check, "the replica %s is down: start it%s", address, gone)
		return "is down"
	case hasFlag(s["flags"], "s_down") || s.ms("last-ok-ping-reply") > oldestPing:
		d.say(wrong, check, "the replica %s does not reply: see whether it is stopped or overloaded%s", address, gone)
		return "does not reply"
	case s["runid"] == "": // it comes with the first reply to INFO
		d.say(wrong, check, "the replica %s has never replied to INFO: see whether the Sentinel's user may run INFO there", address)
		return "does not reply to INFO"
	case s.ms("info-refresh") > oldestInfo:
		d.say(wrong, check, "the replica %s has not replied to INFO for %d s: see whether the Sentinel's user may run INFO there", address, s.ms("info-refresh")/1000)
		return "does not reply to INFO"
	case s["slave-priority"] == "0":
		d.say(note, check, "the replica %s never takes over, since its replica-priority is 0: unless that is intended, set it to 100", address)
		return "has replica-priority 0"
	case d.isOutdated(s):
		d.say(wrong, check, "the replica %s has had no connection to the master for too long to take over: "+
			"bring the master back; if it runs, check masteruser and masterauth, and the replica's log", address)
		return "has had no connection to the master for too long"
	case s["master-link-status"] != "ok" && !d.masterAway() && !d.inFailover():
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

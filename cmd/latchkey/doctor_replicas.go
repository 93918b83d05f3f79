package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

const maxLag = 10 // seconds

// role checks that the server is a master, or a replica that follows a master of its cluster.
func (d *diagnosis) role() {
	master := net.JoinHostPort(d.info["master_host"], d.info["master_port"])
	up := d.info["master_link_status"] == "up"
	switch role := d.info["role"]; {
	case role == "":
	case role == "master":
		d.say(fine, "role", "role is master")
	case !d.inCluster() && !up && d.info["master_sync_in_progress"] != "1":
		d.say(wrong, "role", "this is a replica, and has no connection to its master %s: start the master, "+
			"or use the address of the new one", master)
	case !d.inCluster():
		d.say(wrong, "role", "this is a replica: use the address of its master, %s, or Sentinel", master)
	case up && d.node.line.noFailover:
		d.say(note, "role", "it is a replica of %s, and never takes over, since its cluster-replica-no-failover is yes: unless that is intended, set it to no", master).
			set("cluster-replica-no-failover", "no")
	case up:
		d.say(fine, "role", "it is a replica of %s", master)
	case d.copying[copyOf{master, d.info["tcp_port"]}]: // the master's line says so
		d.say(fine, "role", "it copies from its master %s", master)
	default:
		d.say(wrong, "role", "it is a replica without a connection to its master %s: start the master; "+
			"if it runs, check masteruser and masterauth, and the replica's log", master)
	}
}

// A copyOf names a replica without a copy as its master does. It has no host: the master may know the replica by
// another than the cluster does.
type copyOf struct{ master, port string }

// replicas checks that a write needs a replica, if there are enough, and that all of them follow.
func (d *diagnosis) replicas() {
	n := d.number("connected_slaves")
	if n < 0 {
		return
	}
	if n == 0 && d.info["role"] == "master" {
		level := note
		if d.redis.option.Sentinel.MasterSet != "" { // then the Sentinels' findings say why to add one
			level = fine
		}
		d.say(level, "replicas", "it has no replica: %s; otherwise its sessions are unavailable while it is down, and lost if its disk is lost", d.another("add one", n))
		if least, ok := d.config("min-replicas-to-write"); ok && least != "0" {
			d.say(wrong, "min-replicas-to-write", "min-replicas-to-write is %s, and there is no replica: "+
				"writes are refused (NOREPLICAS): %s, or set it to 0", least, d.another("add a replica", n)).set("min-replicas-to-write", "0")
		}
		return
	}
	if d.info["role"] == "master" || d.inCluster() { // otherwise it is the wrong server, which says enough
		d.bounds(n)
	}
	d.each(n)
}

// bounds checks the settings that bound what a failover loses.
func (d *diagnosis) bounds(n int64) {
	if least, ok := d.config("min-replicas-to-write"); ok {
		d.atLeastOne(least, n)
	}
	if lag, ok := d.config("min-replicas-max-lag"); ok {
		if seconds, _ := strconv.Atoi(lag); seconds <= 0 || seconds > maxLag {
			d.say(wrong, "min-replicas-max-lag", "min-replicas-max-lag is %s: set it to %d; "+
				"otherwise a failover loses more answered writes", lag, maxLag).set("min-replicas-max-lag", strconv.Itoa(maxLag))
		} else {
			d.say(fine, "min-replicas-max-lag", "min-replicas-max-lag is %s", lag)
		}
	}
}

// atLeastOne checks that a write needs a replica, but not the only one: then no write would succeed without it.
func (d *diagnosis) atLeastOne(least string, connected int64) {
	const name = "min-replicas-to-write"
	n, _ := strconv.ParseInt(least, 10, 64)
	if d.info["role"] != "master" { // it does not know how many replicas it will have as a master
		d.say(fine, name, "%s is %d", name, n)
		return
	}
	switch good := d.number("min_slaves_good_slaves"); {
	case n == 0 && connected == 1:
		d.say(note, name, "%s is 0, and there is one replica: %s, and then set it to 1; "+
			"now a failover may lose any number of answered writes. "+
			"With one replica, 1 would refuse all writes while that replica is away", name, d.another("add a second", connected))
	case n == 0:
		d.say(wrong, name, "%s is 0: set it to 1; otherwise a failover may lose any number of answered writes", name).set(name, "1")
	case n > 1 && connected < n:
		d.say(wrong, name, "%s is %d, and there %s only %s: writes are refused (NOREPLICAS): %s, or set it to 1",
			name, n, map[bool]string{true: "is", false: "are"}[connected == 1], plural(connected, "replica"), d.another("add replicas", connected)).set(name, "1")
	case good >= 0 && good < n:
		d.say(wrong, name, "%s is %d, and %d of %d replicas are in time: "+
			"writes are refused (NOREPLICAS): see their logs", name, n, good, connected)
	case connected == 1:
		d.say(note, name, "%s is %d, and there is one replica: while it is away, and after a failover, "+
			"all writes are refused (NOREPLICAS): %s", name, n, d.another("add a second replica", connected))
	default:
		d.say(fine, name, "%s is %d", name, n)
	}
}

// another is the advice to add a replica, unless one that the Sentinels know is missing. They say which.
func (d *diagnosis) another(add string, connected int64) string {
	if d.knownReplicas > connected {
		return "bring back one that is missing"
	}
	return add
}

// each checks that all replicas follow: slave0:ip=…,port=…,state=online,offset=…,lag=0
func (d *diagnosis) each(n int64) {
	late := false
	for i := range n {
		fields := parseInfo(strings.NewReplacer(",", "\n", "=", ":").Replace(d.info[fmt.Sprintf("slave%d", i)]))
		lag, _ := strconv.Atoi(fields["lag"])
		switch state := fields["state"]; {
		case state != "online" && state != "":
			late = true
			d.copying[copyOf{d.node.address, fields["port"]}] = true
			d.say(wrong, "replicas", "its replica %s:%s is not ready yet (%s): wait until it has a copy; if this line stays, see its log", fields["ip"], fields["port"], state)
		case lag > maxLag:
			late = true
			d.say(wrong, "replicas", "its replica %s:%s has not been heard for %d s: see whether it is stopped or overloaded, and see its log", fields["ip"], fields["port"], lag)
		}
	}
	if n > 0 && !late {
		d.say(fine, "replicas", "%s in time", plural(n, "replica"))
	}
}

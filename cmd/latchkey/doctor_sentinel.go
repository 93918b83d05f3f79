package main

import (
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// slowNotice is a time after which a failover starts late.
const slowNotice = 30 * time.Second

// diagnoseSentinels examines the Sentinels of the URL. It returns how many there are, and how many replicas they know.
func (j *job) diagnoseSentinels() (all []finding, sentinels servers, replicas int64, _ error) {
	name := j.redis.option.Sentinel.MasterSet
	if name == "" {
		return nil, sentinels, 0, nil
	}
	addresses := j.redis.option.InitAddress
	each, named := make([]*diagnosis, len(addresses)), make([]string, len(addresses))
	var asked sync.WaitGroup // at once, so that several silent ones cost one timeout
	for i, address := range addresses {
		each[i] = &diagnosis{job: j, node: &node{redis: j.redis, address: address}, kind: aSentinel}
		asked.Go(func() { named[i] = each[i].sentinel(name, len(addresses)) })
	}
	asked.Wait()
	if err := j.ctx.Err(); err != nil {
		return nil, sentinels, 0, err
	}
	masters := make(map[string]bool)
	for i, d := range each {
		sentinels.all++
		if named[i] != "" {
			masters[named[i]] = true
			sentinels.replied++
		}
		if len(masters) > 1 {
			d.say(wrong, "sentinel_master", "it names another master than the Sentinel before it: a failover is under way: wait some seconds, and run doctor again")
		}
		all, replicas = append(all, d.findings...), max(replicas, d.knownReplicas)
	}
	return all, sentinels, replicas, nil
}

// sentinel examines one Sentinel, and returns the address of the master that it names.
func (d *diagnosis) sentinel(name string, inURL int) (master string) {
	client, err := d.redis.toSentinel(d.ctx, d.node.address)
	if err != nil {
		if why := d.redis.explainedOfSentinel(err, d.node.address).why; isRefused(err) {
			d.say(wrong, "sentinel", "it does not let this program in: %s", why)
		} else {
			d.say(wrong, "sentinel", "it cannot be reached: %s: %s, or take it out of the URL", why, revival(why))
		}
		return ""
	}
	d.node.client = client
	known, err := d.node.do(d.ctx, "SENTINEL", "MASTER", name).AsStrMap()
	switch {
	case err != nil && strings.Contains(err.Error(), "No such master"):
		d.say(wrong, "sentinel", "it knows no master %s: correct master_set in the URL, or let it watch that one (SENTINEL MONITOR)", name)
		return ""
	case err != nil:
		d.say(wrong, "sentinel", "it does not say what it knows of %s: %s", name, d.redis.explainedOfSentinel(err, d.node.address).why)
		return ""
	}
	d.info = known
	d.say(fine, "sentinel", "it replies")
	d.tilt()
	d.quorum(name)
	d.others(inURL)
	d.periods(name)
	d.standbys(name)
	master = net.JoinHostPort(known["ip"], known["port"])
	switch flags := known["flags"]; {
	case d.inFailover():
		d.say(wrong, "sentinel_master", "a failover of the master %s is under way: wait some seconds, and run doctor again", master)
	case hasFlag(flags, "s_down", "o_down"):
		d.say(wrong, "sentinel_master", "it does not reach the master %s (%s): bring it back, unless a replica takes over by itself in some seconds", master, flags)
	}
	return master
}

// hasFlag reports whether a server's flags, as a Sentinel lists them, contain one of some.
func hasFlag(flags string, wanted ...string) bool {
	return slices.ContainsFunc(strings.Split(flags, ","), func(flag string) bool { return slices.Contains(wanted, flag) })
}

// tilt checks that the Sentinel acts. For a while after its machine stood still, or its clock jumped, it only looks.
func (d *diagnosis) tilt() {
	text, err := d.node.do(d.ctx, "INFO", "sentinel").ToString()
	switch {
	case err != nil:
		d.say(note, "sentinel_tilt", "it is not checked whether it is in TILT: %s", err)
	case parseInfo(text)["sentinel_tilt"] == "1":
		d.say(wrong, "sentinel_tilt", "it is in TILT, since its machine stood still or its clock has jumped: it starts no failover until 30 s after that: wait, and run doctor again")
	}
}

// quorum checks that enough Sentinels are there to agree on a failover.
func (d *diagnosis) quorum(name string) {
	said, err := d.node.do(d.ctx, "SENTINEL", "CKQUORUM", name).ToString()
	switch {
	case isNoPermission(err):
		d.say(note, "sentinel_quorum", "its quorum is not checked: %s", err)
	case err != nil:
		d.say(wrong, "sentinel_quorum", "no failover is possible: %s: start the Sentinels that are away", strings.TrimSuffix(err.Error(), "."))
	default:
		d.say(fine, "sentinel_quorum", "%s", said)
	}
}

// others checks that the Sentinel knows the others.
func (d *diagnosis) others(inURL int) {
	switch n := d.number("num-other-sentinels") + 1; {
	case n < int64(inURL):
		d.say(wrong, "sentinel_others", "it knows %s, and the URL names %d: all must watch the same master under the same name", plural(n, "Sentinel"), inURL)
	case n < 3:
		d.say(note, "sentinel_others", "there are fewer than three Sentinels: if the machine of one is lost, no failover is possible")
	default:
		d.say(fine, "sentinel_others", "it knows %d other Sentinels, and quorum is %s", n-1, d.info["quorum"])
	}
}

// periods reports when a failover starts, and when it is tried again.
func (d *diagnosis) periods(name string) {
	down, again := d.number("down-after-milliseconds"), d.number("failover-timeout")
	period := func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
	if period(down) >= slowNotice {
		d.say(note, "down-after-milliseconds", "down-after-milliseconds is %d: when the master dies, requests are answered with 503 for %s and longer, "+
			"until a failover starts", down, roughly(period(down))).do("SENTINEL SET " + name + " down-after-milliseconds 5000")
	} else {
		d.say(fine, "down-after-milliseconds", "down-after-milliseconds is %d, failover-timeout %d", down, again)
	}
}

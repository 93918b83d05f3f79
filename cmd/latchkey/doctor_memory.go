package main

import (
	"cmp"
	"strconv"
	"strings"
)

// version checks that the server has the commands of Redis 7.0.
func (d *diagnosis) version() {
	version := d.info["redis_version"]
	major, err := strconv.Atoi(strings.SplitN(version+".", ".", 2)[0])
	switch {
	case version == "" || err != nil:
		return // INFO does not show it
	case major < 7:
		d.say(wrong, "version", "version is %s: use Redis 7.0 or later, or Valkey", version)
	case d.info["valkey_version"] != "":
		d.say(fine, "version", "version is Valkey %s", d.info["valkey_version"])
	default:
		d.say(fine, "version", "version is %s", version)
	}
}

// policy checks that no key is evicted: locks would be evicted first.
func (d *diagnosis) policy() {
	const name = "maxmemory-policy"
	policy := d.info["maxmemory_policy"]
	if policy == "" {
		found, ok := d.config(name)
		if !ok {
			return
		}
		policy = found
	}
	if policy == "noeviction" {
		d.say(fine, name, "%s is %s", name, policy)
	} else {
		d.say(wrong, name, "%s is %s: set it to noeviction; otherwise locks, tombstones and sessions may be evicted", name, policy).set(name, "noeviction")
	}
}

// memory checks that there is free memory.
func (d *diagnosis) memory() {
	const name = "maxmemory"
	most, used := d.number("maxmemory"), d.number("used_memory")
	switch {
	case most < 0 || used < 0:
	case most == 0:
		d.say(note, name, "maxmemory is not set: set it below the machine's memory (CONFIG SET maxmemory), so that a full Redis refuses writes, and is not killed")
	case used > most/4*3:
		d.say(wrong, name, "used_memory is %s, %d %% of maxmemory: set maxmemory higher, or find out what fills it (latchkey stats, "+pages+"store/SYMPTOMS.md#full)",
			size(float64(used)), 100*used/most).set(name, strconv.FormatInt(2*max(used, most), 10))
	default:
		d.say(fine, name, "used_memory is %s, %d %% of maxmemory", size(float64(used)), 100*used/most)
	}
}

// evictions checks that no key was evicted since the start.
func (d *diagnosis) evictions() {
	n := d.number("evicted_keys")
	switch {
	case n < 0:
	case n == 0:
		d.say(fine, "evicted_keys", "evicted_keys is 0")
	case d.info["maxmemory_policy"] == "noeviction":
		d.say(note, "evicted_keys", "evicted_keys is %d, from before maxmemory-policy was noeviction: CONFIG RESETSTAT sets it to 0", n).do("CONFIG RESETSTAT")
	default:
		d.say(wrong, "evicted_keys", "evicted_keys is %d: set maxmemory-policy to noeviction; some users were logged out ("+pages+"store/SYMPTOMS.md#evicted)", n).
			do("CONFIG SET maxmemory-policy noeviction", "CONFIG RESETSTAT")
	}
}

// connections checks that no connection was refused.
func (d *diagnosis) connections() {
	switch n := d.number("rejected_connections"); {
	case n < 0:
	case n == 0:
		d.say(fine, "rejected_connections", "rejected_connections is 0")
	default:
		f := d.say(note, "rejected_connections", "rejected_connections is %d since the start, or since CONFIG RESETSTAT: maxclients is %s; "+
			"it must allow three connections for each process, and those of other clients, and the operating system's limit of open files must allow them "+
			"("+pages+"store/SYMPTOMS.md#maxclients)",
			n, cmp.Or(d.info["maxclients"], "too low"))
		if most := d.number("maxclients"); most > 0 && d.number("connected_clients") > most/2 { // else it was perhaps raised since then
			f.set("maxclients", strconv.FormatInt(2*most, 10))
		}
		f.do("CONFIG RESETSTAT")
	}
}

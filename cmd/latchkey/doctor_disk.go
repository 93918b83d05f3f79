package main

// persistence wants a log, since all sessions are lost in a restart without one.
func (d *diagnosis) persistence() {
	switch enabled := d.number("aof_enabled"); {
	case enabled < 0:
		return
	case enabled == 0:
		d.say(wrong, "appendonly", "appendonly is no: set it to yes; else sessions and logouts are lost when Redis restarts")
		return
	}
	d.say(fine, "appendonly", "appendonly is yes")
	const name = "appendfsync"
	how, ok := d.config(name)
	switch {
	case !ok:
	case how == "always":
		d.say(fine, name, "%s is %s", name, how)
	case how == "everysec":
		d.say(note, name, "%s is %s: set it to always if no answered write may be lost in a crash; "+
			"now it is up to two seconds of them", name, how)
	default:
		d.say(wrong, name, "%s is %s: set it to everysec, or to always; "+
			"else a crash of the machine loses as much as its system has not written", name, how)
	}
}

// disk wants that Redis could write, or else it refuses to be written to.
func (d *diagnosis) disk() {
	if d.number("loading") == 1 {
		d.say(wrong, "loading", "loading is 1: Redis reads its data, and refuses commands until it has done so: wait")
	}
	well := true
	for _, name := range []string{"aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status"} {
		if status := d.info[name]; status != "" && status != "ok" {
			well = false
			d.say(wrong, name, "%s is %s: make room on its disk, or let it write there; else writes are refused (MISCONF)", name, status)
		}
	}
	if well && d.info["rdb_last_bgsave_status"] != "" {
		d.say(fine, "disk", "what it has written to its disk has succeeded")
	}
}

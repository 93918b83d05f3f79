package main

// persistence checks that there is a log: without one, a restart loses all sessions.
func (d *diagnosis) persistence() {
	switch enabled := d.number("aof_enabled"); {
	case enabled < 0:
		return
	case enabled == 0:
		d.say(wrong, "appendonly", "appendonly is no: set it to yes; otherwise sessions and logouts are lost when Redis restarts").set("appendonly", "yes")
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
		d.say(note, name, "%s is %s: set it to always if a crash must not lose any answered write; "+
			"now it may lose up to two seconds of them", name, how).set(name, "always")
	default:
		d.say(wrong, name, "%s is %s: set it to everysec, or to always; "+
			"otherwise a crash of the machine loses all data that its system has not written", name, how).set(name, "everysec")
	}
}

// disk checks that Redis could write to its disk: otherwise it refuses writes.
func (d *diagnosis) disk() {
	if d.number("loading") == 1 {
		d.say(wrong, "loading", "loading is 1: Redis is loading its data, and refuses commands until it has done so: wait ("+pages+"store/SYMPTOMS.md#loading)")
	}
	const refused = "writes are refused"
	well := true
	for _, write := range []struct{ name, again, otherwise string }{
		{"aof_last_write_status", "", refused}, // Redis itself tries again
		{"aof_last_bgrewrite_status", "BGREWRITEAOF", "the log grows until the disk is full"},
		{"rdb_last_bgsave_status", "BGSAVE", refused},
	} {
		status := d.info[write.name]
		if status == "" || status == "ok" {
			continue
		}
		well = false
		level := wrong
		if write.again == "BGSAVE" && d.allowsWritesWithoutSnapshot() {
			level, write.otherwise = note, "there is no new snapshot"
		}
		f := d.say(level, write.name, "%s is %s: free space on Redis's disk, or let it write there; otherwise %s ("+pages+"store/SYMPTOMS.md#misconf)", write.name, status, write.otherwise)
		if write.again != "" {
			f.Text += "; then let it try again"
			f.do(write.again)
		}
	}
	if well && d.info["rdb_last_bgsave_status"] != "" {
		d.say(fine, "disk", "all writes to its disk have succeeded")
	}
}

// allowsWritesWithoutSnapshot reports whether Redis goes on to write if a snapshot cannot be stored: it makes none by itself, or
// does not care.
func (d *diagnosis) allowsWritesWithoutSnapshot() bool {
	for name, off := range map[string]string{"save": "", "stop-writes-on-bgsave-error": "no"} {
		found, err := d.node.do(d.ctx, "CONFIG", "GET", name).AsStrMap()
		if value, ok := found[name]; err == nil && ok && value == off {
			return true
		}
	}
	return false
}

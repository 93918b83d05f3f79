package main

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
			d.say(wrong, setting.name, "%s is %s: set it to %s; %s", setting.name, is, setting.want, setting.why)
		}
	}
	text, err := d.node.do(d.ctx, "CLUSTER", "INFO").ToString()
	if err != nil {
		d.say(note, "cluster", "its view of the cluster is not checked: CLUSTER INFO is refused (%v)", err)
		return
	}
	d.info = parseInfo(text)
	switch state, served := d.info["cluster_state"], d.number("cluster_slots_ok"); {
	case state != "ok":
		d.say(wrong, "cluster_state", "cluster_state is %s, and %d of 16384 slots are served: run redis-cli --cluster fix", state, served)
	case served != 16384:
		d.say(wrong, "cluster_slots_ok", "%d of 16384 slots are served: start the missing nodes, or run redis-cli --cluster fix", served)
	default:
		d.say(fine, "cluster_state", "cluster_state is ok, and all slots are served")
	}
	d.halfMoved()
}

// halfMoved checks that no slot is left half-moved to another node.
func (d *diagnosis) halfMoved() {
	text, err := d.node.do(d.ctx, "CLUSTER", "NODES").ToString()
	if err != nil {
		return // as above
	}
	moving := 0
	for _, line := range parseNodes(text, d.node.address) {
		moving += line.moving // a node shows only its own moving slots
	}
	if moving > 0 {
		d.say(wrong, "slots", "%s moving: unless that is intended now, run redis-cli --cluster fix; "+
			"otherwise their sessions are unavailable", isOrAre(moving))
	}
}

func isOrAre(n int) string {
	if n == 1 {
		return "1 slot is"
	}
	return plural(int64(n), "slot") + " are"
}

package main

// cluster wants all slots to be served, and a lost shard to take only its own sessions with it.
func (d *diagnosis) cluster() {
	if !d.inCluster() {
		return
	}
	for _, setting := range []struct{ name, want, why string }{
		{"cluster-require-full-coverage", "no", "else a lost shard takes the sessions of all others with it"},
		{"cluster-allow-reads-when-down", "no", "else a node that was left alone shows sessions of the past"},
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
		d.say(wrong, "cluster_state", "cluster_state is %s, and %d of 16384 slots are served: redis-cli --cluster fix", state, served)
	case served != 16384:
		d.say(wrong, "cluster_slots_ok", "%d of 16384 slots are served: start the nodes that are away, or redis-cli --cluster fix", served)
	default:
		d.say(fine, "cluster_state", "cluster_state is ok, and all slots are served")
	}
	d.halfMoved()
}

// halfMoved wants no slot that is on its way to another node and does not arrive.
func (d *diagnosis) halfMoved() {
	text, err := d.node.do(d.ctx, "CLUSTER", "NODES").ToString()
	if err != nil {
		return // as above
	}
	moving := 0
	for _, line := range parseNodes(text, d.node.address) {
		moving += line.moving // a node shows its own alone
	}
	if moving > 0 {
		d.say(wrong, "slots", "%s moving: if nobody moves them now, redis-cli --cluster fix; "+
			"else their sessions are unavailable", isOrAre(moving))
	}
}

func isOrAre(n int) string {
	if n == 1 {
		return "1 slot is"
	}
	return plural(int64(n), "slot") + " are"
}

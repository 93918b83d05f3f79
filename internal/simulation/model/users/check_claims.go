package users

import "math/bits"

// These are the rules of unclaimed sessions: see internal/records/unclaimed.go.

// checkMark checks what a command does to the mark: which sessions count as claimed, and which are named.
func (n *step) checkMark(c *command, before, after *view) {
	stay := before.listed & after.listed
	if again := stay & after.entries &^ before.entries; again != 0 {
		n.breaks("%v was claimed, and is unclaimed", again)
	}
	if begun := after.listed &^ before.listed; begun&^after.entries != 0 {
		n.breaks("%v begins, and nobody has come back with it, but it counts as claimed", begun)
	}
	switch claimed := stay & before.entries &^ after.entries; {
	case claimed == 0:
	case c.kind == claim && claimed == set(c.session):
	case c.kind == endAll && claimed == set(c.old):
	case claimed == n.dropped(c, before, after):
	default:
		n.breaks("%v counts as claimed, and nobody has come back with it", claimed)
	}
	if named := after.named &^ before.named; named != 0 && (c.kind != endAll || named != set(c.old)) {
		n.breaks("the mark names %v, and did not before", named)
	}
}

// dropped returns the session for whose entry the mark has no room any more at a login: the oldest.
func (n *step) dropped(c *command, before, after *view) sessions {
	unclaimed := before.unclaimed()
	if c.kind != login || !after.entries.has(c.session) || bits.OnesCount8(uint8(unclaimed)) < n.m.bounds.unclaimed() {
		return 0
	}
	for _, oldest := range before.order {
		if unclaimed.has(oldest) {
			return set(oldest)
		}
	}
	return 0
}

// checkReplaced checks which sessions give way to a login that begins a session: the one that it names, and of the
// others only as many as MaxSessions asks for. The sessions below these are below it, too.
func (n *step) checkReplaced(c *command, before, after *view) {
	got, dropped := after.below(c.session), n.dropped(c, before, after)
	n.replaces[c.session] = got
	named := set(before.root(c.instead))
	others := before.roots() &^ named
	more := 0
	if c.most >= 0 {
		rest := count(before.claimed()&^set(c.old)) + count(others)
		more = min(count(others), max(0, rest-int(c.most)))
	}
	if also := got & others &^ dropped; count(also) > more || count(also)+count(dropped&others) < more {
		n.breaks("login %s replaces %v beside what it names, and not %d sessions", name(c.call), also, more)
	}
	want := named
	want |= got & others
	for j := range uint8(maxCalls) {
		if want.has(j) {
			want |= before.below(j) & before.unclaimed()
		}
	}
	if want &^= dropped; got != want {
		n.breaks("login %s replaces %v, and not %v", name(c.call), got, want)
	}
}

// checkClaim checks that the first claim of a session ends exactly the sessions that its login has replaced,
// unless they were claimed before, and that any other claim ends nothing.
func (n *step) checkClaim(c *command, before, after *view, named sessions) {
	var want sessions
	if before.unclaimed().has(c.session) {
		want = n.replaces[c.session] & before.unclaimed()
	}
	ended := before.alive &^ after.alive
	if ended != want {
		n.breaks("the claim of %s ends %v, and not %v", name(c.session), ended, want)
	}
	if named != ended {
		n.breaks("the claim of %s says that it has ended %v, and has ended %v", name(c.session), named, ended)
	}
}

// checkClaimReply checks what a call that claims a session is told.
func (n *step) checkClaimReply(i uint8, c *command, r *reply) {
	v := n.view()
	switch {
	case r.code == 1 && !v.alive.has(c.session):
		n.breaks("%s has come back with %s, which is over", name(i), name(c.session))
	case r.code != 1 && v.alive.has(c.session):
		n.breaks("%s is told that %s is over, and it is alive", name(i), name(c.session))
	case c.kind == claim && v.unclaimed().has(c.session):
		n.breaks("%s has claimed %s, which is unclaimed", name(i), name(c.session))
	}
}

func count(s sessions) int { return bits.OnesCount8(uint8(s)) }

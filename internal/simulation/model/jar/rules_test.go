package jar

import (
	"strings"
	"testing"
)

// breaks has each rule that can be broken, and the violation that the rule prevents, with some requests from a
// start. With the rule there is no outcome with that violation.
var breaks = []struct {
	name      string
	rules     rules
	start     Start
	limit     Limit
	requests  string
	violation violation
}{
	{"guests and members share a cookie", rules{oneCookie: true}, Nothing, NoLimit,
		"write ann", undoneByWrites},
	{"a guest's response deletes a dead member's cookie", rules{dropDead: true}, Dead, NoLimit,
		"write ann", undoneByWrites},
	{"a session that gives way ends when the newer login is stored", rules{atOnce: true}, Guest, NoLimit,
		"ann ann", undoneByAgain},
	{"a login replaces another user's session", rules{anyUser: true}, Planted, NoLimit,
		"ann mallory-write mallory-bob", undoneByAttacker},
	{"a session that gives way loses its content", rules{empty: true}, Guest, NoLimit,
		"write ann ann", writeLost},
	{"Renew begins a session", rules{emptyRenew: true}, Nothing, NoLimit,
		"ann renew", undoneByRenew},
	{"MaxSessions counts a session from a Renew", rules{renewCounts: true}, Member, Refuse,
		"renew", refusesOut},
	{"a login leaves another user's session alone", rules{linger: true}, Member, NoLimit,
		"bob renew", another},
	{"a logout does not follow a moved ID", rules{linger: true}, Member, NoLimit,
		"logout renew", stillIn},
	{"Login keeps a guest's ID", rules{loginKeeps: true}, Planted, NoLimit,
		"ann mallory-write", stranger},
	{"a navigation with a moved ID is refused", rules{refusePages: true}, Guest, NoLimit,
		"ann", noPage},
	{"Remember keeps a user's ID", rules{rememberKeep: true}, Member, NoLimit,
		"ann remember", undoneByRemember},
}

func TestEachRuleIsForSomething(t *testing.T) {
	for _, b := range breaks {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			x, kept, broken := newExplorer(), newTally(), newTally()
			kept.add(x, newWorld(rules{}, b.limit, b.start, b.requests))
			broken.add(x, newWorld(b.rules, b.limit, b.start, b.requests))
			with, without := kept.counts[b.violation], broken.counts[b.violation]
			if with > 0 || without == 0 {
				t.Errorf("%d outcomes with the rule, %d without it: %s. All violations without it: %v", with, without, b.violation, broken.violations())
			}
			t.Logf("%d outcomes with the rule, %d without it: %s. The first: %s", with, without, b.violation, broken.courses[b.violation])
		})
	}
}

// In no order of responses, and with no loss, does a write undo a login.
func TestNoWriteUndoesALogin(t *testing.T) {
	for _, start := range []Start{Nothing, Guest, Member, Dead, DeadAndGuest, MovedAndGuest} {
		t.Run(string(start), func(t *testing.T) {
			t.Parallel()
			x, y := newExplorer(), newTally()
			for _, requests := range combinations(strings.Fields("write write-nav"), 3) {
				y.add(x, newWorld(rules{}, NoLimit, start, requests+" ann"))
			}
			for _, v := range y.violations() {
				if v == undoneByWrites || v == undoneByAgain || v == undoneSince {
					t.Errorf("%s: %s", v, y.courses[v])
				}
			}
		})
	}
}

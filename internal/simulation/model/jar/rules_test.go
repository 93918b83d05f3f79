package jar

import (
	"strings"
	"testing"
)

// breaks has each rule that can be broken, and the violation that it prevents: with requests from a start.
// There are no such outcomes if the rule is kept.
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
	{"what gives way ends when the newer login is stored", rules{atOnce: true}, Guest, NoLimit,
		"ann ann", undoneByAgain},
	{"a login replaces another user's session", rules{anyUser: true}, Planted, NoLimit,
		"ann mallory-write mallory-bob", undoneByAttacker},
	{"what gives way does not leave its content", rules{empty: true}, Guest, NoLimit,
		"write ann ann", writeLost},
	{"Renew begins a session", rules{emptyRenew: true}, Nothing, NoLimit,
		"ann renew", undoneByRenew},
	{"MaxSessions counts what Renew has made", rules{renewCounts: true}, Member, Refuse,
		"renew", refusesOut},
	{"a login leaves another user's session alone", rules{linger: true}, Member, NoLimit,
		"bob renew", another},
	{"a logout leaves the session alone that the id has become", rules{linger: true}, Member, NoLimit,
		"logout renew", stillIn},
	{"Login keeps a guest's id", rules{loginKeeps: true}, Planted, NoLimit,
		"ann mallory-write", stranger},
	{"a navigation with a moved id is refused", rules{refusePages: true}, Guest, NoLimit,
		"ann", noPage},
	{"Remember keeps a user's id", rules{rememberKeep: true}, Member, NoLimit,
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

// No order of responses, and no loss of any, lets a write undo a login.
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

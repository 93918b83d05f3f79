package locker

import (
	"errors"
	"fmt"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// A vote is the reply of a node.
type vote int

const (
	silent vote = iota // no reply yet
	yes                // done
	no                 // another has the lock on that node
	none               // no token has it
	failed             // the node could not be asked, or did not reply
)

// A tally counts the replies of a Redlock's nodes. Their number is odd.
type tally struct {
	votes     []vote
	others    []lease.Attempt // what the nodes that said no know of the holder
	errs      error           // of the nodes that failed, in one line
	ambiguous bool            // one of the failed nodes may have done the command
}

func newTally(nodes int) *tally { return &tally{votes: make([]vote, nodes)} }

// quorum is more than half of the nodes: two holders would need one node to say yes to both.
func (t *tally) quorum() int { return len(t.votes)/2 + 1 }

func (t *tally) count(v vote) int {
	n := 0
	for _, said := range t.votes {
		if said == v {
			n++
		}
	}
	return n
}

// most reports whether a majority has voted v.
func (t *tally) most(v vote) bool { return t.count(v) >= t.quorum() }

// add counts the reply of a node.
func (t *tally) add(node int, found lease.Attempt, err error) {
	switch {
	case errors.Is(err, ErrLost):
		t.votes[node] = no
	case errors.Is(err, ErrExpired):
		t.votes[node] = none
	case err != nil:
		t.votes[node] = failed
		t.ambiguous = t.ambiguous || scripting.MaybeDone(err)
		err = fmt.Errorf("node %d: %w", node+1, err)
		if t.errs != nil {
			err = fmt.Errorf("%w; %w", t.errs, err)
		}
		t.errs = err
	case found.Taken:
		t.votes[node] = yes
	default:
		t.votes[node] = no
		t.others = append(t.others, found)
	}
}

// addSilent counts the nodes that have not replied as failed.
func (t *tally) addSilent() {
	for node, said := range t.votes {
		if said == silent {
			t.add(node, lease.Attempt{}, errSilent)
		}
	}
}

// complete reports whether all nodes have replied.
func (t *tally) complete() bool { return t.count(silent) == 0 }

// decided reports whether no further reply can change the verdict.
func (t *tally) decided() bool {
	return t.most(yes) || t.most(no) || t.most(none) || t.most(failed) || t.complete()
}

// attempt returns the outcome of a Take. It fails if a majority of the nodes has failed, or if a node was asked
// twice.
func (t *tally) attempt() (lease.Attempt, error) {
	switch {
	case errors.Is(t.errs, errSameNode):
		return lease.Attempt{}, t.errs
	case t.most(yes):
		return lease.Attempt{Taken: true}, nil
	case t.most(failed):
		return lease.Attempt{}, t.err()
	default:
		return t.holder(), nil
	}
}

// holder returns what is known of the holder. The votes may be split among several callers that came at the
// same time. Then no caller has the lock, and there is no lease to wait for.
func (t *tally) holder() lease.Attempt {
	unknown := t.count(silent) + t.count(failed)
	for _, some := range t.others {
		votes := 0
		for _, other := range t.others {
			if other.Holder == some.Holder {
				votes++
				some.Left = max(some.Left, other.Left)
			}
		}
		if votes+unknown >= t.quorum() {
			return some
		}
	}
	return lease.Attempt{}
}

// verdict returns the outcome of an Extend or a Release. If so many nodes failed that the rest is no majority,
// that is the error, unless so many say no that another holder may have a majority.
func (t *tally) verdict() error {
	switch {
	case t.most(yes):
		return nil
	case t.count(yes)+t.count(failed) >= t.quorum():
		if t.ambiguous || t.count(yes) > 0 { // some nodes have done the command, although others refused
			return scripting.AsMaybeDone(t.err())
		}
		return t.err()
	case t.count(no)+t.count(failed) >= t.quorum():
		return ErrLost
	default:
		return ErrExpired
	}
}

// undone counts the nodes that said yes to t, and v to the release that undoes t.
func (t *tally) undone(release *tally, v vote) int {
	n := 0
	for node, said := range t.votes {
		if said == yes && release.votes[node] == v {
			n++
		}
	}
	return n
}

// err returns why too few nodes replied. It wraps the errors of the nodes: as a rule ErrUnavailable.
func (t *tally) err() error {
	return fmt.Errorf("%d of %d nodes failed: %w", t.count(failed), len(t.votes), t.errs)
}

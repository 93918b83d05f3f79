package locker

import (
	"errors"
	"fmt"
	"strings"
)

// A word is what a node has said.
type word int

const (
	silent word = iota // nothing yet
	yes                // done
	no                 // another has the lock on that node
	none               // nobody has
	failed             // it could not be asked, or did not say
)

// A tally is what the nodes of a Redlock have answered so far. Their number is
// odd.
type tally struct {
	words  []word
	others []Attempt  // what those know that said no
	errs   nodeErrors // of those that failed
	doubt  bool       // one of them may have done it all the same
}

func newTally(nodes int) *tally { return &tally{words: make([]word, nodes)} }

// quorum is more than half: two holders would need one node to say yes to both.
func (t *tally) quorum() int { return len(t.words)/2 + 1 }

func (t *tally) count(w word) int {
	n := 0
	for _, said := range t.words {
		if said == w {
			n++
		}
	}
	return n
}

// most reports whether a majority has said w.
func (t *tally) most(w word) bool { return t.count(w) >= t.quorum() }

// add counts the answer of a node.
func (t *tally) add(node int, found Attempt, err error) {
	switch {
	case errors.Is(err, ErrLost):
		t.words[node] = no
	case errors.Is(err, ErrExpired):
		t.words[node] = none
	case err != nil:
		t.words[node] = failed
		t.errs = append(t.errs, fmt.Errorf("node %d: %w", node+1, err))
		t.doubt = t.doubt || mayHaveHappened(err)
	case found.Taken:
		t.words[node] = yes
	default:
		t.words[node] = no
		t.others = append(t.others, found)
	}
}

// addSilent counts those that have not answered as failed.
func (t *tally) addSilent() {
	for node, said := range t.words {
		if said == silent {
			t.add(node, Attempt{}, errSilent)
		}
	}
}

// complete reports whether all nodes have answered.
func (t *tally) complete() bool { return t.count(silent) == 0 }

// decided reports whether no further answer can change the verdict.
func (t *tally) decided() bool {
	return t.most(yes) || t.most(no) || t.most(none) || t.most(failed) || t.complete()
}

// attempt is the outcome of a Take: a majority has said yes, or could have later.
// An error means that there are too few to ask.
func (t *tally) attempt() (Attempt, error) {
	switch {
	case t.most(yes):
		return Attempt{Taken: true}, nil
	case t.most(failed):
		return Attempt{}, t.err()
	default:
		return t.holder(), nil
	}
}

// holder returns what is known of who has the lock instead. The votes may be
// split among several who came at the same time. Then nobody has it, and nobody's
// lease need be waited for.
func (t *tally) holder() Attempt {
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
	return Attempt{}
}

// verdict is the outcome of an Extend or a Release. Where a majority cannot be
// told for lack of answers, that is the error, unless so many say no that
// another may have one.
func (t *tally) verdict() error {
	switch {
	case t.most(yes):
		return nil
	case t.count(yes)+t.count(failed) >= t.quorum():
		return t.err()
	case t.count(no)+t.count(failed) >= t.quorum():
		return ErrLost
	default:
		return ErrExpired
	}
}

// undone counts the nodes that said yes to t, and w to the release that was to
// undo it.
func (t *tally) undone(release *tally, w word) int {
	n := 0
	for node, said := range t.words {
		if said == yes && release.words[node] == w {
			n++
		}
	}
	return n
}

// err tells why too few nodes answered. What it wraps, the nodes decide: as a
// rule ErrUnavailable.
func (t *tally) err() error {
	return fmt.Errorf("%d of %d nodes failed: %w", len(t.errs), len(t.words), t.errs)
}

// nodeErrors are several errors in one line.
type nodeErrors []error

func (e nodeErrors) Unwrap() []error { return e }

func (e nodeErrors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

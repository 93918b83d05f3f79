package locker

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A tally counts what the nodes of a Redlock have answered so far.
type tally struct {
	nodes int
	yes   int // done
	no    int // another has the lock on that node
	none  int // nobody has
	// failed nodes could not be asked, or did not say.
	failed int
	errs   nodeErrors // why
	doubt  bool       // one of them may have done it all the same

	holder string // on one of the nodes that said no
	left   time.Duration
}

// quorum is more than half: two holders would need one node to say yes to both.
func (t *tally) quorum() int { return t.nodes/2 + 1 }

func (t *tally) heard() int { return t.yes + t.no + t.none + t.failed }

// add counts the answer of a node, counted from 1.
func (t *tally) add(node int, found Attempt, err error) {
	switch {
	case errors.Is(err, ErrLost):
		t.no++
	case errors.Is(err, ErrExpired):
		t.none++
	case err != nil:
		t.fail(fmt.Errorf("node %d: %w", node, err), mayHaveHappened(err))
	case found.Taken:
		t.yes++
	default:
		t.no++
		t.holder, t.left = found.Holder, max(t.left, found.Left)
	}
}

func (t *tally) fail(err error, doubt bool) {
	t.failed++
	t.errs = append(t.errs, err)
	t.doubt = t.doubt || doubt
}

// missing is how many nodes are one too many to be without.
func (t *tally) missing() int { return t.nodes - t.quorum() + 1 }

// decided reports whether no further answer can change the outcome.
func (t *tally) decided() bool {
	return t.yes >= t.quorum() || t.no >= t.missing() || t.failed >= t.missing() || t.heard() == t.nodes
}

// attempt is the outcome of a Take: a majority has said yes, or could have later.
// An error means that there are too few to ask.
func (t *tally) attempt() (Attempt, error) {
	switch {
	case t.yes >= t.quorum():
		return Attempt{Taken: true}, nil
	case t.failed >= t.missing():
		return Attempt{}, t.err()
	default:
		return Attempt{Holder: t.holder, Left: t.left, Doubt: t.doubt}, nil
	}
}

// verdict is the outcome of an Extend or a Release. Where a majority cannot be
// told for lack of answers, that is the error, unless so many say no that
// another may have one.
func (t *tally) verdict() error {
	switch {
	case t.yes >= t.quorum():
		return nil
	case t.no >= t.missing():
		return ErrLost
	case t.yes+t.failed >= t.quorum():
		return t.err()
	case t.no+t.failed >= t.quorum():
		return ErrLost
	default:
		return ErrExpired
	}
}

// err tells why too few nodes answered. What it wraps, the nodes decide: as a
// rule ErrUnavailable.
func (t *tally) err() error {
	return fmt.Errorf("%d of %d nodes failed: %w", t.failed, t.nodes, t.errs)
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

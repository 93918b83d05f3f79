package locker

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// everyAnswer calls f with each way in which n nodes can answer, one after the
// other. Who is who does not matter, only which vote comes when.
func everyAnswer(n int, f func(votes []vote)) {
	votes := make([]vote, n)
	var choose func(i int)
	choose = func(i int) {
		if i == n {
			f(votes)
			return
		}
		for _, w := range []vote{yes, no, none, failed} {
			votes[i] = w
			choose(i + 1)
		}
	}
	choose(0)
}

// tallyOf counts the given answers; the other nodes are silent.
func tallyOf(nodes int, votes ...vote) *tally {
	t := newTally(nodes)
	for node, w := range votes {
		err := map[vote]error{no: ErrLost, none: ErrExpired, failed: errRefused}[w]
		t.add(node, lease.Attempt{Taken: w == yes}, err)
	}
	return t
}

// outcome names a verdict.
func outcome(err error) string {
	for _, known := range []error{ErrLost, ErrExpired, ErrUnavailable} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return fmt.Sprint(err)
}

// Nobody who waits for the rest of the answers learns anything else.
func TestTallyDecidesOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 5} {
		everyAnswer(n, func(votes []vote) {
			final := outcome(tallyOf(n, votes...).verdict())
			for i := range votes {
				sofar := tallyOf(n, votes[:i]...)
				if got := outcome(sofar.verdict()); sofar.decided() && got != final {
					t.Errorf("%v: decided as %q after %d answers, and %q after all", votes, got, i, final)
				}
			}
			if !tallyOf(n, votes...).decided() {
				t.Errorf("%v: undecided after all answers", votes)
			}
		})
	}
}

// A majority is enough to know, whatever it says: no need to wait for the slow.
func TestTallyDecidesByMajority(t *testing.T) {
	t.Parallel()
	for _, w := range []vote{yes, no, none, failed} {
		if tallyOf(5, w, w).decided() {
			t.Errorf("two of five decide by saying %d", w)
		}
		if !tallyOf(5, w, w, w).decided() {
			t.Errorf("three of five do not decide by saying %d", w)
		}
	}
}

// A lock is won by a majority and by nothing else. Where a majority failed, that
// is an error; otherwise it can be tried again.
func TestTallyWinsByMajorityOnly(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 5} {
		everyAnswer(n, func(votes []vote) {
			all := tallyOf(n, votes...)
			found, err := all.attempt()
			if want := 2*all.count(yes) > n; found.Taken != want || (all.verdict() == nil) != want {
				t.Errorf("%v: taken: %v, verdict: %v", votes, found.Taken, all.verdict())
			}
			if want := 2*all.count(failed) > n; errors.Is(err, ErrUnavailable) != want || (err != nil) != want {
				t.Errorf("%v: attempt: %v", votes, err)
			}
		})
	}
}

// However the nodes divide their votes between two, and whichever of their answers
// are lost, not both can win.
func TestTallyHasOneWinner(t *testing.T) {
	t.Parallel()
	const a, b = yes, no // whom a node votes for; or for none, or it fails
	for _, n := range []int{1, 3, 5} {
		everyAnswer(n, func(votes []vote) {
			for lost := range 1 << n { // each bit: the answer of a node to a
				first, second := newTally(n), newTally(n)
				for node, vote := range votes {
					var err error
					if lost>>node&1 == 1 {
						err = errNoReply
					}
					first.add(node, lease.Attempt{Taken: vote == a}, err)
					second.add(node, lease.Attempt{Taken: vote == b}, nil)
				}
				one, _ := first.attempt()
				two, _ := second.attempt()
				if one.Taken && two.Taken {
					t.Fatalf("votes %v: two winners", votes)
				}
			}
		})
	}
}

// What the holder of a lock hears when it extends it or gives it back.
func TestTallyVerdict(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		votes []vote
		want  error
	}{
		{[]vote{yes}, nil},
		{[]vote{no}, ErrLost},
		{[]vote{none}, ErrExpired},
		{[]vote{failed}, ErrUnavailable},
		{[]vote{yes, yes, no}, nil},
		{[]vote{yes, failed, failed}, ErrUnavailable}, // it may be there
		{[]vote{yes, failed, none}, ErrUnavailable},   // it may be there
		{[]vote{yes, failed, no}, ErrUnavailable},     // it may be there
		{[]vote{yes, no, no}, ErrLost},
		{[]vote{yes, no, none}, ErrExpired}, // neither has a majority
		{[]vote{none, none, failed}, ErrExpired},
		{[]vote{no, none, failed}, ErrLost}, // another may have a majority
		{[]vote{no, none, none}, ErrExpired},
		{[]vote{yes, yes, no, no, none}, ErrExpired},
		{[]vote{yes, no, no, failed, none}, ErrLost},
		{[]vote{yes, yes, no, no, failed}, ErrUnavailable},
		{[]vote{no, no, failed, failed, failed}, ErrUnavailable},
	} {
		if got := tallyOf(len(tt.votes), tt.votes...).verdict(); !errors.Is(got, tt.want) {
			t.Errorf("%v: %v, want %v", tt.votes, got, tt.want)
		}
	}
}

// Where a node has done what others refuse, all of it may be done.
func TestTallyIsAmbiguous(t *testing.T) {
	t.Parallel()
	if err := tallyOf(3, failed, failed, failed).verdict(); scripting.Ambiguous(err) {
		t.Errorf("all have refused: %v", err)
	}
	if err := tallyOf(3, yes, failed, failed).verdict(); !scripting.Ambiguous(err) || !errors.Is(err, ErrUnavailable) {
		t.Errorf("one has not: %v", err)
	}
	some := tallyOf(3, failed, failed)
	some.add(2, lease.Attempt{}, ErrUnavailable)
	if err := some.verdict(); !scripting.Ambiguous(err) {
		t.Errorf("one has not answered: %v", err)
	}
}

// A holder is named, and its lease counts, only if it may have a majority: by the
// nodes that told, and those that did not.
func TestTallyHolder(t *testing.T) {
	t.Parallel()
	held := func(by string, left time.Duration) lease.Attempt { return lease.Attempt{Holder: by, Left: left} }
	for name, tt := range map[string]struct {
		answers []lease.Attempt // nothing: the node failed
		want    lease.Attempt
	}{
		"everywhere":             {[]lease.Attempt{held("a", s), held("a", 3*s), held("a", 2*s)}, held("a", 3*s)},
		"on a majority":          {[]lease.Attempt{held("b", 9*s), held("a", s), held("a", s)}, held("a", s)},
		"one may have the rest":  {[]lease.Attempt{held("a", s), {}, {Taken: true}}, held("a", s)},
		"votes are split":        {[]lease.Attempt{held("a", s), held("b", s), {Taken: true}}, lease.Attempt{}},
		"split three ways":       {[]lease.Attempt{held("a", s), held("b", s), held("c", s)}, lease.Attempt{}},
		"two of five":            {[]lease.Attempt{held("a", s), held("a", s), held("b", s), {Taken: true}, {Taken: true}}, lease.Attempt{}},
		"two of five, one hides": {[]lease.Attempt{held("b", s), held("a", s), held("a", s), {Taken: true}, {}}, held("a", s)},
	} {
		all := newTally(len(tt.answers))
		for node, found := range tt.answers {
			var err error
			if found == (lease.Attempt{}) {
				err = errRefused
			}
			all.add(node, found, err)
		}
		if got, err := all.attempt(); got != tt.want || err != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// An error names the nodes, says everything in one line, and is what they say.
func TestTallyNamesFailedNodes(t *testing.T) {
	t.Parallel()
	all := newTally(3)
	all.add(2, lease.Attempt{}, errRefused)
	all.add(1, lease.Attempt{Taken: true}, nil)
	all.addSilent()
	_, err := all.attempt()
	want := "2 of 3 nodes failed: node 3: " + errRefused.Error() + "; node 1: redis is unavailable: i/o timeout"
	if err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
	if !errors.Is(err, ErrUnavailable) || !scripting.Unanswered(err) || !all.ambiguous {
		t.Errorf("%v: unavailable: %v, a time-out: %v, in doubt: %v", err, errors.Is(err, ErrUnavailable), scripting.Unanswered(err), all.ambiguous)
	}
}

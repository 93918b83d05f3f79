package locker

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// everyAnswer calls f with each way in which n nodes can answer, one after the
// other. Who is who does not matter, only which word comes when.
func everyAnswer(n int, f func(words []word)) {
	words := make([]word, n)
	var choose func(i int)
	choose = func(i int) {
		if i == n {
			f(words)
			return
		}
		for _, w := range []word{yes, no, none, failed} {
			words[i] = w
			choose(i + 1)
		}
	}
	choose(0)
}

// tallyOf counts the given answers; the other nodes are silent.
func tallyOf(nodes int, words ...word) *tally {
	t := newTally(nodes)
	for node, w := range words {
		err := map[word]error{no: ErrLost, none: ErrExpired, failed: errRefused}[w]
		t.add(node, Attempt{Taken: w == yes}, err)
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
		everyAnswer(n, func(words []word) {
			final := outcome(tallyOf(n, words...).verdict())
			for i := range words {
				sofar := tallyOf(n, words[:i]...)
				if got := outcome(sofar.verdict()); sofar.decided() && got != final {
					t.Errorf("%v: decided as %q after %d answers, and %q after all", words, got, i, final)
				}
			}
			if !tallyOf(n, words...).decided() {
				t.Errorf("%v: undecided after all answers", words)
			}
		})
	}
}

// A majority is enough to know, whatever it says: no need to wait for the slow.
func TestTallyDecidesByMajority(t *testing.T) {
	t.Parallel()
	for _, w := range []word{yes, no, none, failed} {
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
		everyAnswer(n, func(words []word) {
			all := tallyOf(n, words...)
			found, err := all.attempt()
			if want := 2*all.count(yes) > n; found.Taken != want || (all.verdict() == nil) != want {
				t.Errorf("%v: taken: %v, verdict: %v", words, found.Taken, all.verdict())
			}
			if want := 2*all.count(failed) > n; errors.Is(err, ErrUnavailable) != want || (err != nil) != want {
				t.Errorf("%v: attempt: %v", words, err)
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
		everyAnswer(n, func(votes []word) {
			for lost := range 1 << n { // each bit: the answer of a node to a
				first, second := newTally(n), newTally(n)
				for node, vote := range votes {
					var err error
					if lost>>node&1 == 1 {
						err = errNoReply
					}
					first.add(node, Attempt{Taken: vote == a}, err)
					second.add(node, Attempt{Taken: vote == b}, nil)
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
		words []word
		want  error
	}{
		{[]word{yes}, nil},
		{[]word{no}, ErrLost},
		{[]word{none}, ErrExpired},
		{[]word{failed}, ErrUnavailable},
		{[]word{yes, yes, no}, nil},
		{[]word{yes, failed, failed}, ErrUnavailable}, // it may be there
		{[]word{yes, failed, none}, ErrUnavailable},   // it may be there
		{[]word{yes, failed, no}, ErrUnavailable},     // it may be there
		{[]word{yes, no, no}, ErrLost},
		{[]word{yes, no, none}, ErrExpired}, // neither has a majority
		{[]word{none, none, failed}, ErrExpired},
		{[]word{no, none, failed}, ErrLost}, // another may have a majority
		{[]word{no, none, none}, ErrExpired},
		{[]word{yes, yes, no, no, none}, ErrExpired},
		{[]word{yes, no, no, failed, none}, ErrLost},
		{[]word{yes, yes, no, no, failed}, ErrUnavailable},
		{[]word{no, no, failed, failed, failed}, ErrUnavailable},
	} {
		if got := tallyOf(len(tt.words), tt.words...).verdict(); !errors.Is(got, tt.want) {
			t.Errorf("%v: %v, want %v", tt.words, got, tt.want)
		}
	}
}

// A holder is named, and its lease counts, only if it may have a majority: by the
// nodes that told, and those that did not.
func TestTallyHolder(t *testing.T) {
	t.Parallel()
	held := func(by string, left time.Duration) Attempt { return Attempt{Holder: by, Left: left} }
	for name, tt := range map[string]struct {
		answers []Attempt // nothing: the node failed
		want    Attempt
	}{
		"everywhere":             {[]Attempt{held("a", s), held("a", 3*s), held("a", 2*s)}, held("a", 3*s)},
		"on a majority":          {[]Attempt{held("b", 9*s), held("a", s), held("a", s)}, held("a", s)},
		"one may have the rest":  {[]Attempt{held("a", s), {}, {Taken: true}}, held("a", s)},
		"votes are split":        {[]Attempt{held("a", s), held("b", s), {Taken: true}}, Attempt{}},
		"split three ways":       {[]Attempt{held("a", s), held("b", s), held("c", s)}, Attempt{}},
		"two of five":            {[]Attempt{held("a", s), held("a", s), held("b", s), {Taken: true}, {Taken: true}}, Attempt{}},
		"two of five, one hides": {[]Attempt{held("b", s), held("a", s), held("a", s), {Taken: true}, {}}, held("a", s)},
	} {
		all := newTally(len(tt.answers))
		for node, found := range tt.answers {
			var err error
			if found == (Attempt{}) {
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
	all.add(2, Attempt{}, errRefused)
	all.add(1, Attempt{Taken: true}, nil)
	all.addSilent()
	_, err := all.attempt()
	const want = "2 of 3 nodes failed: node 3: redis is unavailable: READONLY; node 1: redis is unavailable: i/o timeout"
	if err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
	if !errors.Is(err, ErrUnavailable) || !isTimeout(err) || !all.doubt {
		t.Errorf("%v: unavailable: %v, a time-out: %v, in doubt: %v", err, errors.Is(err, ErrUnavailable), isTimeout(err), all.doubt)
	}
}

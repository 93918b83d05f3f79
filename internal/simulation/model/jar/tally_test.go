package jar

import (
	"maps"
	"slices"
	"strings"
)

// These are the calls that the requests of a row may make.
const (
	calls   = "write ann bob logout renew remember"
	pages   = "write write-nav ann logout renew"
	visit   = "write ann logout"
	again   = "write ann logout renew"
	attacks = "write ann mallory-write mallory-ann mallory-bob"
)

// combinations returns all combinations of n words, with repetition. Their order does not matter, since the
// requests are sent in every order.
func combinations(words []string, n int) (all []string) {
	if n == 0 {
		return []string{""}
	}
	for i, word := range words {
		for _, more := range combinations(words[i:], n-1) {
			all = append(all, strings.TrimSpace(word+" "+more))
		}
	}
	return all
}

// A tally has the number of different outcomes with each violation, and the first course to each violation.
type tally struct {
	counts  map[violation]int
	courses map[violation]string
	states  int
}

func newTally() *tally {
	return &tally{counts: make(map[violation]int), courses: make(map[violation]string)}
}

// A finding is an outcome with a violation.
type finding struct {
	outcome   state
	violation violation
}

// outcome returns what is left of a state when all requests are over: the sessions, the cookies, and the status
// of each request. The order in which that happened does not matter.
func outcome(s *state) state {
	left := *s
	left.crossed, left.endedAll, left.minute = false, false, false
	for i := range left.requests {
		q := &s.requests[i]
		left.requests[i] = request{phase: q.phase, status: q.status}
	}
	return left
}

// add explores a model, and counts its outcomes.
func (y *tally) add(x *explorer, m *world) {
	found := make(map[finding]bool)
	y.states += x.explore(m, func(s *state, at int32) {
		for _, v := range m.violations(s) {
			f := finding{outcome(s), v}
			if found[f] {
				continue
			}
			found[f] = true
			y.counts[v]++
			if how := y.courses[v]; how == "" || x.length(at) < strings.Count(how, ";") {
				y.courses[v] = x.course(m, at)
			}
		}
	})
}

// violations returns the violations that were found, sorted.
func (y *tally) violations() []violation { return slices.Sorted(maps.Keys(y.counts)) }

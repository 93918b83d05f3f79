package jar

import (
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

var (
	whole = flag.Bool("all", false, "also let sessions end elsewhere and a minute pass, and explore four requests: two minutes")
	tell  = flag.Bool("courses", false, "tell the shortest course to each violation")
)

// never are the violations that must have no outcome, in any order of requests and with any loss.
var never = []violation{undoneByWrites, stranger, noPage}

// A number is how many outcomes have a violation: if only the requests happen; and with -all, if sessions may
// also end elsewhere and a minute may pass.
type number struct{ alone, more int }

// A row has all combinations of some requests, from one start.
type row struct {
	start    Start
	limit    Limit
	requests int
	of       string
	slow     bool // only with -all
	want     map[violation]number
}

func (r *row) String() string {
	name := string(r.start)
	if r.limit != NoLimit {
		name += ", " + r.limit.String()
	}
	return fmt.Sprintf("%s: %d of %s", name, r.requests, r.of)
}

// count explores the row.
func (r *row) count(more bool) *tally {
	x, y := newExplorer(), newTally()
	for _, words := range combinations(strings.Fields(r.of), r.requests) {
		m := newWorld(rules{}, r.limit, r.start, words)
		m.more = more
		y.add(x, m)
	}
	return y
}

func TestProtocol(t *testing.T) {
	var states atomic.Int64
	t.Cleanup(func() { t.Logf("%d states", states.Load()) })
	for _, r := range table {
		if r.slow && !*whole {
			continue
		}
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			y := r.count(false)
			states.Add(int64(y.states))
			check(t, y, func(v violation) int { return r.want[v].alone })
			if *whole {
				y := r.count(true)
				states.Add(int64(y.states))
				check(t, y, func(v violation) int { return r.want[v].more })
			}
		})
	}
}

// check compares a tally with the table.
func check(t *testing.T, y *tally, want func(violation) int) {
	t.Helper()
	for _, v := range y.violations() {
		switch got := y.counts[v]; {
		case got != want(v):
			t.Errorf("%d outcomes, not %d: %s. The shortest course: %s", got, want(v), v, y.courses[v])
		case got > 0 && *tell:
			t.Logf("%d outcomes: %s. The shortest course: %s", got, v, y.courses[v])
		}
	}
	for _, v := range never {
		if y.counts[v] > 0 {
			t.Errorf("this must never happen: %s", v)
		}
	}
}

package model_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/simulation/model"
)

var (
	whole  = flag.Bool("all", false, "explore all models, most with two faults: a minute, without the race detector")
	faults = flag.Int("faults", 0, "explore all models with so many faults: 2 take an hour")
	work   = flag.String("work", "", "explore only what three requests do: `wtd`, say, for write, touch and destroy")
)

// scripts returns the scripts of this source tree.
func scripts(t *testing.T) model.Scripts {
	t.Helper()
	s, err := model.Read("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// works are all combinations of what three requests may do: w(rite), t(ouch) or d(estroy).
func works() (all []string) {
	const kinds = "wtd"
	for i := range 27 {
		all = append(all, string([]byte{kinds[i/9], kinds[i/3%3], kinds[i%3]}))
	}
	return all
}

// large are the combinations of works with writes, but the records are large: in all writes, or in the last one.
func large() (all []string) {
	for _, work := range works() {
		if last := strings.LastIndexByte(work, 'w'); last >= 0 {
			all = append(all, strings.ReplaceAll(work, "w", "l"))
			if mixed := work[:last] + "l" + work[last+1:]; mixed != all[len(all)-1] {
				all = append(all, mixed)
			}
		}
	}
	return all
}

// optimistic are all combinations with a request that writes without the lock (o).
func optimistic() (all []string) {
	const kinds = "wtdo"
	for i := range 64 {
		work := string([]byte{kinds[i/16], kinds[i/4%4], kinds[i%4]})
		if strings.Contains(work, "o") {
			all = append(all, work)
		}
	}
	return all
}

// one allows one fault of any kind.
var one = model.Bounds{Faults: 1, Broken: 1, Doubled: 1, Expired: 1, Crashed: 1, Left: 1, Asked: 1}

// two allows most combinations of two faults.
var two = model.Bounds{Faults: 2, Broken: 2, Doubled: 1, Expired: 1, Crashed: 1, Left: 1, Asked: 1}

// A course is a number of models that are explored with the same bounds.
type course struct {
	bounds model.Bounds
	works  []string
}

func courses() []course {
	switch n := uint8(*faults); {
	case *work != "":
		return []course{{one, []string{*work}}, {two, []string{*work}}}
	case n > 0:
		return []course{{model.Bounds{Faults: n, Broken: n, Doubled: n, Expired: n, Crashed: 2, Left: 1, Asked: 1}, slices.Concat(works(), large(), optimistic())}}
	case !*whole:
		return []course{{one, []string{"wtw", "ttw", "dtw", "dww", "ltl", "lll", "wto"}}}
	}
	unasked := two
	unasked.Asked = 0
	late := model.Bounds{Faults: 3, Broken: 3, Expired: 1}
	return []course{
		{one, slices.Concat(works(), large(), optimistic())},
		{unasked, works()},
		{unasked, []string{"lll", "wll", "lwt", "ltl", "dll"}},
		{unasked, []string{"wwo", "oww", "dwo"}},
		{two, []string{"www", "wtd", "tdw"}},
		{late, []string{"wtw", "ttw", "ltl", "wto"}},
	}
}

func TestProtocol(t *testing.T) {
	s := scripts(t)
	for _, c := range courses() {
		e, states, transitions, longest := model.New(s, c.bounds, model.Switches{}), 0, 0, 0
		for _, work := range c.works {
			r := e.Explore(work)
			if r.Violation != "" {
				t.Fatalf("%s: %s", work, r.Violation)
			}
			states, transitions, longest = states+r.States, transitions+r.Transitions, max(longest, r.Longest)
		}
		t.Logf("%d states, %d transitions in %d models with %v; without more faults at most %d steps to the end",
			states, transitions, len(c.works), c.bounds, longest)
	}
}

// The same scripts and bounds lead to the same states.
func TestExploreIsDeterministic(t *testing.T) {
	s := scripts(t)
	bounds := model.Bounds{Faults: 1, Crashed: 1}
	first := model.New(s, bounds, model.Switches{}).Explore("wtd")
	if again := model.New(s, bounds, model.Switches{}).Explore("wtd"); again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
}

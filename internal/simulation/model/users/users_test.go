package users_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/simulation/model"
	"github.com/a2139e8d/latchkey/internal/simulation/model/users"
)

var (
	whole = flag.Bool("all", false, "explore all models: half a minute, without the race detector")
	work  = flag.String("work", "", "explore only these calls: `login endall`, say")
)

// scripts returns the scripts of this source tree.
func scripts(t *testing.T) model.Scripts {
	t.Helper()
	s, err := model.Read("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const hours = 3 * 3600

var (
	right = []users.Clocks{{0, 0}}
	// wrong has clocks that are not known yet, that are wrong because of an old reply, and that are wrong
	// because Redis's clock was set. The last two differ between the processes.
	wrong = []users.Clocks{{0, 0}, {users.Unknown, users.Unknown}, {-1, -1}, {1, 1}, {-hours, -hours}, {hours, hours}}
	apart = []users.Clocks{{0, users.Unknown}, {-1, 1}, {hours, 0}, {0, hours}, {0, -hours}}
	sets  = []int{-hours, -20, 20, hours}
)

// A course is a number of models that are explored with the same bounds.
type course struct {
	bounds users.Bounds
	works  []string
}

// threes returns all combinations of three calls of which the first begins a session.
func threes() (all []string) {
	for _, first := range []string{"login", "create"} {
		words := strings.Fields("login create renew save end endall endall-except")
		for _, second := range words {
			for _, third := range words {
				if first == "create" && (second == "endall-except" || third == "endall-except") {
					continue // which spares a user's session
				}
				all = append(all, first+" "+second+" "+third)
			}
		}
	}
	return all
}

// pairs are all pairs of calls in which one can change the effect of the other.
var pairs = []string{"login login", "login renew", "login save", "login end", "login endall", "login endall-except",
	"create renew", "create save", "create end", "endall endall", "login-max login-max", "login-refuse login-refuse"}

func courses() []course {
	once := users.Bounds{Passes: 1, Clocks: right}
	switch {
	case *work != "":
		return []course{
			{users.Bounds{Passes: 1, Clocks: wrong}, []string{*work}},
			{users.Bounds{Passes: 1, Clocks: right, Sets: sets}, []string{*work}},
			{users.Bounds{Passes: 2, Clocks: wrong}, []string{*work}},
		}
	case !*whole:
		return []course{
			{once, []string{"login endall endall", "login endall-except renew", "create renew end"}},
			{users.Bounds{Passes: 1, Clocks: wrong}, []string{"login endall"}},
		}
	}
	return []course{
		{once, threes()},
		{once, []string{"login endall-except renew login", "login endall login end", "login renew endall end", "create renew endall endall",
			"login endall-except login endall", "login-max login-max endall", "login-refuse login-refuse end"}},
		{users.Bounds{Passes: 2, Clocks: wrong}, pairs},
		{users.Bounds{Passes: 1, Clocks: apart}, []string{"login endall login", "login endall-except login", "login end endall"}},
		{users.Bounds{Passes: 1, Clocks: right, Sets: sets}, pairs},
	}
}

func TestProtocol(t *testing.T) {
	s := scripts(t)
	for _, c := range courses() {
		e, states, transitions := users.New(s, c.bounds, users.Switches{}), 0, 0
		for _, work := range c.works {
			r := e.Explore(work)
			if r.Violation != "" {
				t.Fatalf("%s: %s", work, r.Violation)
			}
			states, transitions = states+r.States, transitions+r.Transitions
		}
		t.Logf("%d states, %d transitions in %d models with %v", states, transitions, len(c.works), c.bounds)
	}
}

// Rules that the modelled client follows are broken here, and the exploration must notice. The rules of
// the scripts are broken in the catalogue of internal/defects.
func TestBreaks(t *testing.T) {
	s := scripts(t)
	for _, b := range []struct {
		name     string
		switches users.Switches
		work     string
		want     string // part of the violation's text
	}{
		{"a login says that its request arrives when it is sent", users.Switches{ArrivesWhenSent: true},
			"login endall", "were ended since its request came"},
		{"a clock that is ahead is not corrected", users.Switches{StayAhead: true},
			"login endall", "is told that it has come too late"},
		{"a command may come twice as late", users.Switches{ComesLate: true},
			"login end", "begins too late"},
	} {
		t.Run(b.name, func(t *testing.T) {
			found := users.New(s, users.Bounds{Passes: 1, Clocks: wrong}, b.switches).Explore(b.work)
			if !strings.Contains(found.Violation, b.want) {
				t.Fatalf("in %d states this was found:\n%s", found.States, found.Violation)
			}
			t.Logf("after %d states: %s", found.States, found.Violation)
		})
	}
}

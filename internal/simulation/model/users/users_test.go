package users_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/simulation/model"
	"github.com/a2139e8d/latchkey/internal/simulation/model/users"
)

var (
	whole = flag.Bool("all", false, "explore all models: three quarters of a minute, without the race detector")
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
	// wrong has clocks that are not known yet, that are wrong because of an old reply, and that are wrong because
	// Redis's clock was set. In apart the clocks of the two processes differ.
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

// claims returns all combinations of a login and two calls that matter to an unclaimed session.
func claims() (all []string) {
	words := strings.Fields("again claim renew save end endall endall-except")
	for _, second := range words {
		for _, third := range words {
			work := "login " + second + " " + third
			if strings.Contains(work, "claim") || strings.Contains(work, "again") {
				all = append(all, work)
			}
		}
	}
	return all
}

// replacements are combinations of logins in which later ones replace earlier ones.
var replacements = []string{"login claim again claim", "login-max claim login-max claim", "login-refuse claim login-refuse claim"}

// unrelated are combinations in which unrelated sessions give way to one login.
var unrelated = []string{"login login claim login-max", "login login login-max claim", "login again claim login-max"}

// longer are combinations of four calls, some of which are claims.
var longer = append([]string{"login again again claim", "login claim again endall", "login claim again endall-except", "login end again claim",
	"login again claim end", "login save again claim", "login again claim save", "login renew again claim", "login claim renew again",
	"login-max claim login-max end", "login-max claim login-max endall", "login-refuse claim login-refuse end",
	"login-refuse claim again-refuse claim", "login-two login-two again-two claim", "create again claim again"}, slices.Concat(replacements, unrelated)...)

// pairs are all pairs of calls in which one can change the effect of the other.
var pairs = []string{"login login", "login renew", "login save", "login end", "login endall", "login endall-except",
	"create renew", "create save", "create end", "endall endall", "login-max login-max", "login-refuse login-refuse",
	"login claim", "login again", "login-max again-max", "login-refuse again-refuse"}

func courses() []course {
	once := users.Bounds{Passes: 1, Clocks: right}
	small := users.Bounds{Passes: 1, Clocks: right, Room: 2}
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
			{once, []string{"login again claim", "login-max claim login-max", "login-refuse claim login-refuse"}},
			{small, []string{"login again claim"}},
			{users.Bounds{Passes: 1, Clocks: wrong}, []string{"login endall"}},
		}
	}
	return []course{
		{once, threes()},
		{once, []string{"login endall-except renew login", "login endall login end", "login renew endall end", "create renew endall endall",
			"login endall-except login endall", "login-max login-max endall", "login-refuse login-refuse end"}},
		{once, claims()},
		{once, longer},
		{small, []string{"login login login claim", "login again again claim"}},
		{users.Bounds{Passes: 2, Clocks: wrong}, pairs},
		{users.Bounds{Passes: 2, Clocks: wrong}, []string{"login-max claim login-max"}},
		{users.Bounds{Passes: 1, Clocks: apart}, []string{"login endall login", "login endall-except login", "login end endall"}},
		{users.Bounds{Passes: 1, Clocks: right, Sets: sets}, append([]string{"login-max claim login-max"}, pairs...)},
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

// TestBreaks breaks rules that the modelled client follows, and the exploration must notice. The rules of the
// scripts are broken in the catalogue of internal/defects.
func TestBreaks(t *testing.T) {
	s, once := scripts(t), users.Bounds{Passes: 1, Clocks: wrong}
	for _, b := range []struct {
		name     string
		switches users.Switches
		bounds   users.Bounds
		work     string
		want     string // part of the violation's text
	}{
		{"a login says that its request arrives when it is sent", users.Switches{ArrivesWhenSent: true},
			once, "login endall", "were ended since its request came"},
		{"a clock that is ahead is not corrected", users.Switches{StayAhead: true},
			once, "login endall", "is told that it has come too late"},
		{"a command may come twice as late", users.Switches{ComesLate: true},
			once, "login end", "begins too late"},
		// With room for only one unclaimed session, the second login makes the first count as claimed.
		{"a login that counts again does not say that expired sessions are off the list", users.Switches{PrunesUnsaid: true},
			users.Bounds{Clocks: right, Room: 1}, "login end login login-refuse", "is told a second time"},
	} {
		t.Run(b.name, func(t *testing.T) {
			found := users.New(s, b.bounds, b.switches).Explore(b.work)
			if !strings.Contains(found.Violation, b.want) {
				t.Fatalf("in %d states this was found:\n%s", found.States, found.Violation)
			}
			t.Logf("after %d states: %s", found.States, found.Violation)
		})
	}
}

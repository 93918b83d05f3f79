package users

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/a2139e8d/latchkey/internal/simulation/model"
)

// Bounds limit what may happen in a trace.
type Bounds struct {
	Passes int      // how often time may pass, by each of the spans once
	Clocks []Clocks // what the processes may believe Redis's clock to be at first
	Sets   []int    // by how many seconds Redis's clock may be set, once in a trace
	Room   int      // for unclaimed sessions in a mark; 0: as many as in the library
}

// unclaimed returns the number of unclaimed sessions that a mark has room for.
func (b Bounds) unclaimed() int { return cmp.Or(b.Room, mostUnclaimed) }

func (b Bounds) String() string {
	text := fmt.Sprintf("time that passes %d times at most; clocks %v", b.Passes, b.Clocks)
	if len(b.Sets) > 0 {
		text += fmt.Sprintf("; Redis's clock set by one of %d s", b.Sets)
	}
	if b.Room > 0 {
		text += fmt.Sprintf("; room for %d unclaimed sessions", b.Room)
	}
	return text
}

// Switches break the client.
type Switches struct {
	ArrivesWhenSent bool // a login says that its request has arrived when it is sent
	StayAhead       bool // a clock that is ahead is not corrected
	ComesLate       bool // a command that must not come late may come twice as late
	PrunesUnsaid    bool // a login that counts again does not say that expired sessions are off the list
}

// A Report is the result of an exploration.
type Report struct {
	States, Transitions int
	Violation           string // the rule that was broken, and how; "" if none was
}

// An Explorer explores combinations of calls over the same scripts. It runs each command in each state of
// Redis only once.
type Explorer struct {
	server *server
	bounds Bounds
	seen   *model.Seen[state]
}

// New returns an explorer.
func New(s model.Scripts, b Bounds, w Switches) *Explorer {
	return &Explorer{newServer(s, b, w), b, model.NewSeen[state]()}
}

// explorer is a breadth-first search, so that the first violation is one of the shortest.
type explorer struct {
	world       *world
	seen        *model.Seen[state]
	parents     []int32
	transitions int
	wrong       string
	wrongAt     int32
}

// Explore explores every course that calls can take. work has a word for each call, such as "login
// endall".
func (e *Explorer) Explore(work string) Report {
	m := &world{server: e.server, bounds: e.bounds}
	last := uint8(none)
	for i, text := range strings.Fields(work) {
		w, ok := words[text]
		if !ok || i == maxCalls || w.needs && last == none {
			return Report{Violation: "no such calls"}
		}
		m.words = append(m.words, w)
		m.of[i], m.twin[i] = none, none
		if w.needs {
			m.of[i] = last
		}
		for j := range i {
			if m.words[j] == w && m.of[j] == m.of[i] && process(uint8(j)) == process(uint8(i)) && !w.begins {
				m.twin[i] = uint8(j)
			}
		}
		if w.begins {
			last = uint8(i)
		}
	}
	e.seen.Forget()
	x := &explorer{world: m, seen: e.seen}
	x.run()
	r := Report{States: len(x.seen.States), Transitions: x.transitions}
	if x.wrong != "" {
		r.Violation = x.wrong + "\n" + x.trace()
	}
	return r
}

func (x *explorer) run() {
	for _, clocks := range x.world.bounds.Clocks {
		x.add(&state{clocks: clocks, ended: never}, -1)
	}
	var at int32
	x.world.emit = func(n *step) {
		x.transitions++
		if n.bad != "" {
			if x.wrong == "" {
				x.wrong, x.wrongAt = n.bad, at
			}
			return
		}
		x.add(&n.state, at)
	}
	for ; int(at) < len(x.seen.States) && x.wrong == ""; at++ {
		s := x.seen.States[at]
		x.world.next(&s)
	}
}

func (x *explorer) add(s *state, parent int32) {
	if _, isNew := x.seen.Add(s); isNew {
		x.parents = append(x.parents, parent)
	}
}

// trace describes the steps that led to the violation.
func (x *explorer) trace() string {
	var path []state
	for at := x.wrongAt; at >= 0; at = x.parents[at] {
		path = append(path, x.seen.States[at])
	}
	x.world.telling = true
	defer func() { x.world.telling = false }()
	var b strings.Builder
	fmt.Fprintf(&b, "     what the processes know of Redis's clock: %v\n", path[len(path)-1].clocks)
	for i := len(path) - 1; i >= 0; i-- {
		found := ""
		x.world.emit = func(n *step) {
			if found == "" && (i > 0 && n.bad == "" && n.state == path[i-1] || i == 0 && n.bad == x.wrong) {
				found = n.told()
			}
		}
		x.world.next(&path[i])
		fmt.Fprintf(&b, "%3d. %s\n", len(path)-i, found)
	}
	return b.String()
}

package model

import (
	"fmt"
	"strings"
)

// Bounds limit how often something may go wrong in a trace.
type Bounds struct {
	Faults  uint8 // of the next four kinds together
	Broken  uint8 // connections, with a command or a reply
	Doubled uint8 // commands
	Expired uint8 // leases, and turns that a place was given
	Crashed uint8 // processes

	Left  uint8 // requests that stop waiting
	Asked uint8 // times that a place asks although it was not told
}

func (b Bounds) String() string {
	return fmt.Sprintf("at most %d faults: %d broken, %d doubled, %d run out, %d crashed; %d give up, %d ask",
		b.Faults, b.Broken, b.Doubled, b.Expired, b.Crashed, b.Left, b.Asked)
}

// Switches break the client.
type Switches struct {
	QuitAlways      bool // a request that leaves the line takes the place of its process along
	AnswerEarly     bool // a request that hands the session over is answered before its version is stored
	JoinedReadsVoid bool // a lost lock does not matter to a request that has only read
	KeepBase        bool // a tenure continues with the record that its take has read
	OnlyWhenTold    bool // a place asks only for the turn that it was given

	TrustSet       bool // a plain take believes the reply to SET
	ReadFirst      bool // it reads the record before it has the lock
	ReadApart      bool // it reads the record, and then looks at the lock
	TakeTombstones bool // it takes a tombstone for a record
	StageTogether  bool // all large records are staged at one key

	ForgetOwn bool // a request does not recognize, under the lock, what it has written without it
}

// A Report is the result of an exploration.
type Report struct {
	States, Transitions int
	Longest             int    // way to the end without faults, in steps
	Violation           string // the rule that was broken, and how; "" if none was
}

// explorer is a breadth-first search, so that the first violation is one of the shortest.
type explorer struct {
	model       *model
	seen        *Seen[state]
	parents     []int32
	transitions int
	edges       []int32 // the calm ones, of each state
	ends        []int32 // the index at which the edges of a state end
	wrong       string
	wrongAt     int32
}

// An Explorer explores models over the same scripts. Work done in one model is not repeated in the next.
type Explorer struct {
	server   *server
	bounds   Bounds
	switches Switches
	seen     *Seen[state]
}

// New returns an explorer.
func New(s Scripts, b Bounds, w Switches) *Explorer {
	return &Explorer{newServer(s), b, w, NewSeen[state]()}
}

// Explore explores every course that three requests can take. work has a letter for each: w for a write,
// l for a large write, t for a touch, d for the end of the session, and o for a write without the lock.
func (e *Explorer) Explore(work string) Report {
	e.seen.Forget()
	m := &model{server: e.server, bounds: e.bounds, switches: e.switches, work: work}
	x := &explorer{model: m, seen: e.seen}
	x.run()
	r := Report{States: len(x.seen.States), Transitions: x.transitions}
	if x.wrong == "" {
		r.Longest = x.checkEnds()
	}
	if x.wrong != "" {
		r.Violation = x.wrong + "\n" + x.trace()
	}
	return r
}

func (x *explorer) run() {
	var at int32
	x.add(&state{}, -1)
	x.model.emit = func(n *step) {
		x.transitions++
		if n.bad != "" {
			x.wrong, x.wrongAt = n.bad, at
			return
		}
		id := x.add(&n.state, at)
		if n.calm {
			x.edges = append(x.edges, id)
		}
	}
	for ; int(at) < len(x.seen.States) && x.wrong == ""; at++ {
		s := x.seen.States[at]
		x.model.next(&s)
		x.ends = append(x.ends, int32(len(x.edges)))
	}
}

func (x *explorer) add(s *state, parent int32) int32 {
	id, isNew := x.seen.Add(s)
	if isNew {
		x.parents = append(x.parents, parent)
	}
	return id
}

// trace describes the steps that led to the violation.
func (x *explorer) trace() string {
	var path []state
	for at := x.wrongAt; at >= 0; at = x.parents[at] {
		path = append(path, x.seen.States[at])
	}
	x.model.telling = true
	defer func() { x.model.telling = false }()
	var b strings.Builder
	for i := len(path) - 1; i >= 0; i-- {
		found := ""
		x.model.emit = func(n *step) {
			if found == "" && (i > 0 && n.bad == "" && n.state == path[i-1] || i == 0 && n.bad == x.wrong) {
				found = n.told()
			}
		}
		x.model.next(&path[i])
		if found != "" {
			fmt.Fprintf(&b, "%3d. %s\n", len(path)-i, found)
		}
	}
	return b.String()
}

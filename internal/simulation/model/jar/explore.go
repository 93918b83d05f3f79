package jar

import (
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/internal/simulation/model"
)

// An explorer explores models one after the other, always in the same memory.
type explorer struct {
	seen    *model.Seen[state]
	parents []int32 // of each state: the one from which it was reached first
	by      []step  // and by which step
}

func newExplorer() *explorer { return &explorer{seen: model.NewSeen[state]()} }

// explore visits all states of a model, the shortest courses first. It calls over for each state in which all
// requests are over; at is its number, for course. It returns how many states it has visited.
func (x *explorer) explore(m *world, over func(s *state, at int32)) int {
	x.seen.Forget()
	x.parents, x.by = x.parents[:0], x.by[:0]
	x.add(&m.initial, -1, step{})
	var next []step
	for at := int32(0); int(at) < len(x.seen.States); at++ {
		s := x.seen.States[at]
		if m.isOver(&s) {
			over(&s, at)
		}
		next = m.steps(&s, next[:0])
		for _, p := range next {
			then := s
			m.do(&then, p)
			x.add(&then, at, p)
		}
	}
	return len(x.seen.States)
}

func (x *explorer) add(s *state, parent int32, by step) {
	if _, isNew := x.seen.Add(s); isNew {
		x.parents, x.by = append(x.parents, parent), append(x.by, by)
	}
}

// course describes one of the shortest ways to a state.
func (x *explorer) course(m *world, at int32) string {
	var told []string
	for ; x.parents[at] >= 0; at = x.parents[at] {
		told = append(told, m.told(&x.seen.States[at], x.by[at]))
	}
	told = append(told, "at first the browser has "+m.initial.browser.String())
	slices.Reverse(told)
	return strings.Join(told, "; ")
}

// length returns how many steps course tells.
func (x *explorer) length(at int32) (n int) {
	for ; x.parents[at] >= 0; at = x.parents[at] {
		n++
	}
	return n
}

// isOver reports whether each request was answered, or its response lost.
func (m *world) isOver(s *state) bool {
	for i := range m.works {
		if s.requests[i].phase < answered {
			return false
		}
	}
	return true
}

package model

import "fmt"

// checkEnds looks at what comes of each state if nothing more goes wrong and nobody
// comes: whatever is done first, there is an end, everybody was answered, and nothing
// is left. It returns how many steps that takes at most.
func (x *explorer) checkEnds() int {
	const unknown, open = -2, -1
	steps := make([]int32, len(x.seen.States))
	for i := range steps {
		steps[i] = unknown
	}
	type visit struct{ id, edge int32 }
	var stack []visit
	longest := int32(0)
	for root := range int32(len(x.seen.States)) {
		if steps[root] == unknown {
			stack = append(stack[:0], visit{root, x.start(root)})
			steps[root] = open
		}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.edge == x.ends[top.id] {
				steps[top.id] = x.finish(top.id, steps)
				longest = max(longest, steps[top.id])
				stack = stack[:len(stack)-1]
				continue
			}
			to := x.edges[top.edge]
			top.edge++
			switch steps[to] {
			case unknown:
				steps[to] = open
				stack = append(stack, visit{to, x.start(to)})
			case open: // it is on the stack, and all above it are on a circle
				least := to
				for i := len(stack) - 1; stack[i].id != to; i-- {
					least = min(least, stack[i].id)
				}
				x.found("this may go on for ever", least)
			}
		}
	}
	return int(longest)
}

// finish returns how many steps it takes at most from a state to the end, if that is
// known of all that may come next.
func (x *explorer) finish(id int32, steps []int32) (most int32) {
	if x.start(id) == x.ends[id] {
		x.checkEnd(id)
	}
	for _, to := range x.edges[x.start(id):x.ends[id]] {
		most = max(most, steps[to]+1)
	}
	return most
}

// start is where the calm edges of a state begin.
func (x *explorer) start(id int32) int32 {
	if id == 0 {
		return 0
	}
	return x.ends[id-1]
}

// checkEnd looks at a state in which nothing is to be done any more.
func (x *explorer) checkEnd(id int32) {
	s := &x.seen.States[id]
	v := &x.model.server.views[s.db]
	bad := ""
	for r := range s.requests {
		if p := s.requests[r].phase; p != idle && p != done {
			bad = fmt.Sprintf("%s is never answered", name(uint8(r)))
		}
	}
	switch {
	case bad != "":
	case !v.free():
		bad = "the lock is left behind"
	case len(v.queue) > 0 && s.used.broken+s.used.doubled+s.used.crashed == 0:
		bad = "a place is left behind in the queue"
	}
	if bad != "" {
		x.found(bad, id)
	}
}

// found notes what is wrong in a state. Of several the first is kept, which takes the
// fewest steps to come to.
func (x *explorer) found(bad string, id int32) {
	if x.wrong == "" || id < x.wrongAt {
		x.wrong, x.wrongAt = bad, id
	}
}

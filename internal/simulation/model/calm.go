package model

import "fmt"

// checkEnds checks what follows from each state if nothing more goes wrong and no request comes: whatever
// is done first, the steps come to an end, every request gets a response, and nothing is left behind. It
// returns the largest number of steps that this takes.
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
			case open: // it is on the stack, and all above it are on a cycle
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

// finish returns the largest number of steps from a state to the end, if that is known for all states
// that may come next.
func (x *explorer) finish(id int32, steps []int32) (most int32) {
	if x.start(id) == x.ends[id] {
		x.checkEnd(id)
	}
	for _, to := range x.edges[x.start(id):x.ends[id]] {
		most = max(most, steps[to]+1)
	}
	return most
}

// start is the index at which the calm edges of a state begin.
func (x *explorer) start(id int32) int32 {
	if id == 0 {
		return 0
	}
	return x.ends[id-1]
}

// checkEnd checks a state in which no step is left.
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

// found records what is wrong in a state. Of several violations it keeps the one that takes the fewest
// steps to reach.
func (x *explorer) found(bad string, id int32) {
	if x.wrong == "" || id < x.wrongAt {
		x.wrong, x.wrongAt = bad, id
	}
}

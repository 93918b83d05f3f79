package locker

import (
	"context"
	"os"
	"sync"
	"time"
)

// A panel is the nodes of a Redlock as they are asked on behalf of one lease.
//
// Each of them gets its questions one after another, in the order of the calls of
// ask. So a release does not overtake the take that it is to undo.
type panel struct {
	timeout time.Duration
	mu      sync.Mutex      // guards the slice
	asked   []chan struct{} // of each node: closed when it is through with the last question
}

func newPanel(nodes int, timeout time.Duration) *panel {
	return &panel{timeout: timeout, asked: make([]chan struct{}, nodes)}
}

// A question is put to one node, counted from 0. Its ctx does not end with that of
// ask, since the node is to be told even if nobody waits for its answer.
type question func(ctx context.Context, node int) (Attempt, error)

// errSilent reads like the time-out that the node's connection would find.
var errSilent error = &evalError{err: os.ErrDeadlineExceeded, maybe: true}

// ask puts a question to all nodes at once, and counts their answers until it has
// heard enough, or the time for all of them is over. Those that come later are
// not counted, but each question ends by its own time-out.
func (p *panel) ask(ctx context.Context, q question, enough func(*tally) bool) *tally {
	type answer struct {
		node  int
		found Attempt
		err   error
	}
	answers := make(chan answer, len(p.asked)) // room for all, so that none waits to be heard
	p.mu.Lock()
	for node, before := range p.asked {
		done := make(chan struct{})
		p.asked[node] = done
		go func() {
			defer close(done)
			if before != nil {
				<-before
			}
			found, err := q(context.WithoutCancel(ctx), node)
			answers <- answer{node, found, err}
		}()
	}
	p.mu.Unlock()

	limit := p.timeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end))
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	t := newTally(len(p.asked))
	for !t.complete() && !enough(t) {
		select {
		case a := <-answers:
			t.add(a.node, a.found, a.err)
		case <-timer.C:
			t.addSilent()
		}
	}
	return t
}

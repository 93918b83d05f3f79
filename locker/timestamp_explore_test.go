package locker

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A contender is a Go process that takes a lock by single tries, so that a test
// decides when.
type contender struct {
	t *testing.T
	timestamp
	key, token string
	holds      bool
	lost       bool // its Release was told that it is another's
}

func newContender(t *testing.T, server *redistest.Server, key string) *contender {
	algorithm := timestamp{runner: runnerOn(server.Pool(t, 1), patient.Timeout)}
	return &contender{t: t, timestamp: algorithm, key: key, token: rand.Text()}
}

// take makes one try, which is one step for all others.
func (c *contender) take() step {
	found, err := c.Take(context.Background(), c.key, c.token, "", patient.Lease)
	if err != nil {
		c.t.Errorf("Take: %v", err)
	}
	c.holds = found.Taken
	return nil
}

// wait tries until it has the lock, each time as somebody new.
func (c *contender) wait() {
	for c.token = rand.Text(); !c.holds; c.take() {
		time.Sleep(time.Millisecond)
	}
}

// release gives the lock back.
func (c *contender) release() step {
	c.holds = false
	err := c.Release(context.Background(), c.key, c.token, 0)
	if c.lost = errors.Is(err, ErrLost); err != nil && !c.lost {
		c.t.Errorf("Release: %v", err)
	}
	return nil
}

// then makes what last returns the end of a series of steps.
func then(first step, last func() step) step {
	return func() step {
		if next := first(); next != nil {
			return then(next, last)
		}
		return last()
	}
}

// explore calls run once for every series of choices it can make. choose returns
// one of 0 to n-1. It returns how many there were.
func explore(run func(choose func(n int) int)) int {
	var path, width []int // what was chosen, out of how many
	for runs := 1; ; runs++ {
		depth := 0
		run(func(n int) int {
			if depth == len(path) {
				path, width = append(path, 0), append(width, n)
			}
			if width[depth] != n {
				panic("the same choices led to something else than before")
			}
			depth++
			return path[depth-1]
		})
		// Go on with the last choice that has an alternative.
		last := len(path) - 1
		for last >= 0 && path[last]+1 == width[last] {
			last--
		}
		if last < 0 {
			return runs
		}
		path, width = path[:last+1], width[:last+1]
		path[last]++
	}
}

// interleave lets choose decide who makes the next step, until all are done.
// After each step it calls check.
func interleave(choose func(n int) int, steps []step, check func()) {
	for len(steps) > 0 {
		i := choose(len(steps))
		if steps[i] = steps[i](); steps[i] == nil {
			steps = slices.Delete(steps, i, i+1)
		}
		check()
	}
}

// Three contenders of three steps each can come in 9!/(3!3!3!) orders.
func TestTimestampExplore(t *testing.T) {
	seen := map[string]bool{}
	runs := explore(func(choose func(n int) int) {
		order := ""
		var steps []step
		for _, name := range []string{"a", "b", "c"} {
			log := func(next step) step {
				return func() step { order += name; return next }
			}
			steps = append(steps, log(log(log(nil))))
		}
		interleave(choose, steps, func() {})
		seen[order] = true
	})
	if runs != 1680 || len(seen) != 1680 {
		t.Errorf("%d runs, %d orders", runs, len(seen))
	}
}

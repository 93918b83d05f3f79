//go:build soak

package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A tally counts what came of the requests.
type tally struct {
	operations atomic.Int64 // requests that succeeded; what fails at once must not count
	writes     atomic.Int64 // those that stored something
	lost       atomic.Int64 // locks

	mu    sync.Mutex // guards the rest
	kinds counts
	worst time.Duration
}

// count reports whether Redis was away. An error that is none of those that faults may
// cause fails the soak.
func (y *tally) count(t *testing.T, what string, err error, took time.Duration) (away bool) {
	switch {
	case err == nil && (what == "save" || what == "renew"):
		y.writes.Add(1)
		fallthrough
	case err == nil:
		y.operations.Add(1)
	case errors.Is(err, ErrLost):
		y.lost.Add(1)
	}
	for _, known := range []error{ErrUnavailable, ErrLost, ErrTimeout, ErrGone, ErrNotFound, ErrTooLarge, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			word, _, _ := strings.Cut(known.Error(), ":")
			what, away, err = what+": "+word, known == ErrUnavailable, nil
			break
		}
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.worst = max(y.worst, took)
	y.kinds.add(what)
	return away
}

func (y *tally) short() string {
	return fmt.Sprintf("%d operations, %d answered writes", y.operations.Load(), y.writes.Load())
}

func (y *tally) String() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return fmt.Sprintf("%s; longest request %v; outcomes: %v", y.short(), y.worst.Round(time.Millisecond), y.kinds)
}

// counts tells how often each of some things happened.
type counts map[string]int

func (c *counts) add(what string) {
	if *c == nil {
		*c = make(counts)
	}
	(*c)[what]++
}

func (c counts) String() string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(c)) {
		all = append(all, fmt.Sprintf("%s %d", what, c[what]))
	}
	return strings.Join(all, ", ")
}

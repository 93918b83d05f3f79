package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// alone is the load of a lock that all processes use without sessions.
type alone struct {
	ctx   context.Context
	fleet fleet
	runs  int
}

func beginLock(ctx context.Context, f fleet) (load, error) {
	a := &alone{ctx: ctx, fleet: f}
	_, err := a.run(100 * time.Millisecond) // the warm-up
	return a, err
}

func (a *alone) prepare(time.Duration) error { return nil }

func (a *alone) run(d time.Duration) (tally, error) {
	a.runs++
	use := app.Alone{Key: fmt.Sprintf("alone%d", a.runs), Goroutines: aloneGoroutines, Hold: aloneHold, For: d}
	ctx, cancel := context.WithTimeout(a.ctx, d+stallAfter)
	defer cancel()
	waits := make([]app.Waits, len(a.fleet))
	errs := make([]error, len(waits))
	var group sync.WaitGroup
	for i, p := range a.fleet {
		group.Go(func() { errs[i] = p.ask(ctx, http.MethodPost, "/lock", use, &waits[i]) })
	}
	group.Wait()
	t := tally{took: millis(d)}
	acquired := make([]int, len(waits))
	for i, w := range waits {
		t.latencies = append(t.latencies, w.Milliseconds...)
		acquired[i] = w.Acquired
		t.requests += len(w.Milliseconds)
		t.late += len(w.Milliseconds) - w.Acquired
	}
	t.unfair = mostToLeast(acquired)
	return t, cmp.Or(errs...)
}

func (a *alone) check(*tally) error { return nil }
func (a *alone) close()             {}

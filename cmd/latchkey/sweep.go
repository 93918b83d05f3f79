package main

import (
	"context"
	"strconv"
	"time"
)

const (
	// batch is about how many keys Redis looks at in one SCAN, and how many are then read in one write. Both
	// together take Redis a quarter of a millisecond. The slowest hundredth of a program's requests takes 1.4
	// times as long as without a sweep; with a batch of 100 it took 1.8 times as long.
	batch = 50
	// search is the batch if hardly any of the keys are read. It takes Redis as long as a smaller batch that is read.
	// A search of a million sessions takes two thirds of the time that it would take with batches of 50: most of the
	// time is pauses.
	search = 2 * batch
	// restFactor is the pause after each batch, in times of the batch. A busy Redis takes longer for a batch,
	// so its pauses are longer.
	restFactor = 2
	// longestRest ends the pause after a batch that took long because Redis or the network stood still.
	longestRest = 200 * time.Millisecond
)

// sweep calls f with all keys of a pattern on a node, batch by batch, until f wants no more. A batch may have no key.
// A key may come twice while Redis rearranges its table, and a key that is made or deleted meanwhile may be missing.
// Redis looks at count keys at a time. After each batch, sweep calls after with about how many keys were looked at so
// far.
func (n *node) sweep(ctx context.Context, pattern string, count int,
	f func(keys []string) (more bool, _ error), after func(seen int)) error {
	for cursor, seen := uint64(0), 0; ; {
		begun := time.Now()
		page, err := n.do(ctx, "SCAN", strconv.FormatUint(cursor, 10), "MATCH", pattern, "COUNT", strconv.Itoa(count)).AsScanEntry()
		if err != nil {
			return n.explained(err)
		}
		more, err := f(page.Elements)
		if err != nil {
			return n.explained(err)
		}
		seen += count
		after(seen)
		if cursor = page.Cursor; cursor == 0 || !more {
			return nil
		}
		if err := pause(ctx, rest(time.Since(begun))); err != nil {
			return err
		}
	}
}

// rest returns how long to pause after a batch.
func rest(batch time.Duration) time.Duration { return min(restFactor*batch, longestRest) }

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// chances is how often a peer may stand still before it is given up.
const chances = 2

// An outcome is what one peer did in a cell.
type outcome struct {
	peer  app.Peer
	turns []turn
	stood int   // how often it has stood still
	err   error // why there are no more turns

	fleet *fleet
	load  load // nil: to be begun
	spent time.Duration
}

// try does something with the peer. One that stands still begins anew, since that
// is what somebody would do who runs it.
func (o *outcome) try(do func() error) {
	err := do()
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		o.close()
		if o.stood++; o.stood == chances {
			o.err = fmt.Errorf("stood still %d times", chances)
		}
	default:
		o.err = err
	}
}

// close ends the clients and the processes.
func (o *outcome) close() {
	if o.load != nil {
		o.load.close()
		o.load = nil
	}
	if o.fleet != nil {
		o.fleet.close()
		o.fleet = nil
	}
}

// A look is what was spent by then. Asking the app costs something, too, so
// Redis is asked in between.
type look struct {
	redis cost
	app   app.Stats
}

func (o *outcome) look(ctx context.Context, server *redisServer) (l look, err error) {
	if l.app, err = o.fleet.stats(ctx); err != nil {
		return l, err
	}
	l.redis, err = costs(ctx, server)
	return l, err
}

// kept returns the share of the answered writes that were found in the record,
// of all turns together. ok is false where none compete.
func (o *outcome) kept() (share float64, ok bool) {
	writes, kept := 0, 0
	for _, t := range o.turns {
		writes, kept = writes+t.writes, kept+t.kept
	}
	return float64(kept) / float64(writes), writes > 0
}

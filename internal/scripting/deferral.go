package scripting

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// deferring has the refusals by which Redis defers a command: while a slot is moving to another node (TRYAGAIN, if
// one of several keys does not exist, like the lock that is free), while a cluster chooses a new master, while a
// server starts, while another program's script runs for long (BUSY), or after a failover, until the address leads to
// the new master (READONLY). Redis has done nothing then. The command is sent again, until the round trip has no time
// left. A command that could not be sent to a node of a cluster is deferred as well: another node will get the slots of
// that node.
var deferring = []string{rehashing, "CLUSTERDOWN ", "LOADING ", "MASTERDOWN ", "BUSY ", "READONLY "}

const rehashing = "TRYAGAIN "

// misdirected has the refusals by the wrong server. A client that knows clusters will find the right server, so the
// command is deferred. Any other client never will.
var misdirected = []string{moving, "ASK "}

// defers reports whether Redis will do later, or on another server, what it has refused.
func (r *Runner) defers(refusal error) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(refusal.Error(), prefix) }
	return slices.ContainsFunc(deferring, begins) || r.cluster != nil && slices.ContainsFunc(misdirected, begins)
}

// deferred is why a try was deferred.
type deferred struct{ error }

func (d deferred) Unwrap() error { return d.error }

// ended returns the error of a round trip that was deferred until ctx ended.
func (d deferred) ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return d.tooLong()
	}
	return d.refused() // the caller has left
}

func (d deferred) tooLong() error {
	return deferredTooLong{d.refused(), strings.HasPrefix(d.Error(), rehashing)}
}

func (d deferred) refused() error {
	if errors.Is(d.error, transport.ErrRefused) {
		return d.error
	}
	return fmt.Errorf("%w: put off until now: %w", transport.ErrRefused, d.error)
}

// deferredTooLong is the error of a round trip that was deferred for all of its time. It is a timeout, as if Redis
// had not replied.
type deferredTooLong struct {
	error
	moving bool // the slot was moving
}

func (deferredTooLong) Timeout() bool   { return true }
func (d deferredTooLong) Unwrap() error { return d.error }

// Moving reports whether a round trip was deferred for all of its time since the slot of its keys is moving to
// another node. Redis works, and will take the commands soon.
func Moving(err error) bool {
	d, ok := errors.AsType[deferredTooLong](err)
	return ok && d.moving
}

// A deferral counts the waits of one round trip that is deferred. The zero value has not waited yet.
type deferral struct {
	tries int
	why   deferred  // the last try was deferred
	again time.Time // when the next try was sent
}

// wait waits for a random time: 1 to 2 ms the first time, and 32 to 64 ms in the end. It returns false if ctx ends
// before.
func (d *deferral) wait(ctx context.Context, why deferred) bool {
	timer := time.NewTimer(time.Duration((1 + Chance()) * float64(time.Millisecond<<min(d.tries, 5))))
	defer timer.Stop()
	d.tries++
	d.why = why
	select {
	case <-timer.C:
		d.again = time.Now()
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// explain returns err. But if err only says that the end of the round trip cut the last of several tries short,
// explain returns the error of the try before, which was deferred.
func (d *deferral) explain(err error, timeout time.Duration) error {
	switch {
	case d.why.error == nil || !isTimeout(err) || time.Since(d.again) >= timeout/4:
		return err
	case MaybeDone(err):
		return maybeDone{d.why.tooLong()}
	}
	return d.why.tooLong()
}

// Chance returns a random number in [0, 1), for pauses. The number comes from crypto/rand, which tests can seed, so
// that a simulation of many processes can be repeated exactly.
func Chance() float64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program first
	return float64(binary.LittleEndian.Uint64(b[:])>>11) / (1 << 53)
}

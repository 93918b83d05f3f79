package scripting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// What Redis puts off is sent again, until the exchange has had its time: a slot that is on its way
// to another node (TRYAGAIN, whenever one of several keys does not exist, as a lock that is free), a
// cluster that chooses a new master, a server that has just started. Redis has done nothing then.
// So is what could not be sent to a node of a cluster: another will have its slots.
var puttingOff = []string{rehashing, "CLUSTERDOWN ", "LOADING ", "MASTERDOWN "}

const rehashing = "TRYAGAIN "

// What is put off by a server that is not the right one, where the client will find that: a client
// that does not know clusters never does.
var misdirected = []string{moving, "ASK ", "READONLY "}

// putsOff reports whether Redis will do later, or elsewhere, what it has refused.
func (r *Runner) putsOff(refusal error) bool {
	text := refusal.Error()
	return hasPrefix(text, puttingOff) || r.cluster != nil && hasPrefix(text, misdirected)
}

func hasPrefix(text string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// A later is why an exchange is put off.
type later struct{ error }

func (l later) Unwrap() error { return l.error }

// putOff is the error of what was put off for as long as an exchange may take: like one that Redis
// has not answered, it has had its time.
type putOff struct {
	error
	moving bool // the slot was on its way
}

func (putOff) Timeout() bool   { return true }
func (p putOff) Unwrap() error { return p.error }

// Moving reports whether err is that of an exchange that was put off for all of its time since the slot
// of its keys is on its way to another node: Redis is there, and will do it soon.
func Moving(err error) bool {
	p, ok := errors.AsType[putOff](err)
	return ok && p.moving
}

// notInTime returns the error of an exchange that was put off until ctx ended.
func notInTime(ctx context.Context, why later) error {
	if ctx.Err() == context.DeadlineExceeded {
		return why.inVain()
	}
	return why.refused() // the caller has gone
}

func (l later) inVain() error { return putOff{l.refused(), strings.HasPrefix(l.Error(), rehashing)} }

func (l later) refused() error {
	if errors.Is(l.error, transport.ErrRefused) {
		return l.error
	}
	return fmt.Errorf("%w: put off until now: %w", transport.ErrRefused, l.error)
}

// patience is for an exchange that is put off. The zero value has not waited yet.
type patience struct {
	tries  int
	why    later     // it was put off last
	again  time.Time // it was sent then for the last time
	cancel context.CancelFunc
}

// wait waits for 1 to 2 ms at first, and for 32 to 64 ms in the end, at random. It returns false if
// the end comes before, or ctx ends, and otherwise a context that lasts until then.
func (p *patience) wait(ctx context.Context, end time.Time, why later) (context.Context, bool) {
	if p.cancel == nil {
		ctx, p.cancel = context.WithDeadline(ctx, end)
	}
	timer := time.NewTimer(time.Duration((1 + Chance()) * float64(time.Millisecond<<min(p.tries, 5))))
	defer timer.Stop()
	p.tries++
	p.why = why
	select {
	case <-timer.C:
		p.again = time.Now()
		return ctx, ctx.Err() == nil
	case <-ctx.Done():
		return ctx, false
	}
}

// explain returns err, or if that only says that the last of several tries was cut short by the end
// of the exchange, the error of what was put off. An exchange has had so much time.
func (p *patience) explain(err error, timeout time.Duration) error {
	switch {
	case p.why.error == nil || !isTimeout(err) || time.Since(p.again) >= timeout/4:
		return err
	case Ambiguous(err):
		return ambiguous{p.why.inVain()}
	}
	return p.why.inVain()
}

// over releases what wait has needed.
func (p *patience) over() {
	if p.cancel != nil {
		p.cancel()
	}
}

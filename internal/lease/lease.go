package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// Locks are locks that stand alone, as those of package locker do. The zero value is ready for use, and has no queue.
type Locks struct{ Lines[*Lease] }

// errNoLease is the error of a zero Lease.
var errNoLease = errors.New("locker: the zero Lease holds no lock: Lock returns a Lease")

// A Lease is a lock that is held and, before that, the wait for it. It owns its key's line. locker.Lease documents the
// methods that both have.
type Lease struct {
	ticket    Ticket[*Lease]
	locks     *Locks
	algorithm Algorithm
	valid     func(time.Duration) time.Duration // of a Cautious algorithm; or nil

	mu     sync.Mutex // guards all below; is locked before Lines.mu; not held during a round trip
	state  state
	own    bool // the lease owns its key: it has not left the line, nor passed the key on
	quota  Quota
	term   Term
	alarm  Alarm                     // guarded by the lines' mutex
	lost   chan struct{}             // closed when the lock is lost; nil until Lost is called
	onLost []context.CancelCauseFunc // to be called when the lock is lost
	why    error                     // the reason for which the lock was lost

	unlocked chan struct{} // closed when the first Unlock has ended; nil unless another call waits for that
	outcome  error         // of the first Unlock

	// At most one extension is under way, so that the term is that of the last one.
	extending chan struct{} // closed when the extension ends; nil: no extension is under way
}

type state int

const (
	waiting state = iota // also of a zero Lease
	holding
	lost
	releasing // by the first Unlock, which waits for Redis
	released
)

// LockAs waits for key by the rules of locker.Locker. l is zero, and is the lease on key afterwards.
func (k *Locks) LockAs(ctx context.Context, l *Lease, key string, a Algorithm, o Options) error {
	o = o.WithDefaults()
	l.locks, l.algorithm = k, a
	if cautious, ok := a.(Cautious); ok {
		l.valid = cautious.Valid
	}
	l.ticket = Ticket[*Lease]{Who: l, Key: key, Label: o.Label, Options: &o, Context: ctx}
	for {
		head, err := k.Enter(&l.ticket)
		if head && err == nil {
			var won Won
			won, err = l.ticket.Compete(a)
			if err == nil {
				l.mu.Lock()
				l.quota = Quota{Began: won.Sent}
				l.begin(won)
				l.mu.Unlock()
			}
		}
		if err != nil {
			return fmt.Errorf("locker: %w", err)
		}
		// A lock that was passed on may be lost by now, or come just as ctx ends.
		if ctx.Err() == nil && l.Validity() > 0 {
			return nil
		}
		_ = l.Unlock(ctx) // its error does not matter
		l.mu.Lock()
		_ = l.waitForExtension(context.Background()) // which is part of the term that has ended
		l.mu.Unlock()
	}
}

// begin begins a lease. It is called with mu held.
func (l *Lease) begin(won Won) {
	l.state, l.own, l.why, l.unlocked, l.outcome = holding, true, nil, nil, nil
	l.term.Begin(won, l.ticket.Options, l.valid)
	l.quota.Holders++
	l.locks.Own(l.ticket.Key, Holder{Token: won.Token, Lease: l}, &l.alarm, l, l.term.Renewal(), l.term.End())
}

// Token returns the token of this holder, the lock's value.
func (l *Lease) Token() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term.Token
}

func (l *Lease) Validity() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != holding {
		return 0
	}
	return max(0, time.Until(l.term.End()))
}

func (l *Lease) Lost() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.lost = make(chan struct{})
		if l.state == lost {
			close(l.lost)
		}
	}
	return l.lost
}

func (l *Lease) OnLost(cancel context.CancelCauseFunc) {
	if cancel == nil { // it would panic, and only if the lease is lost
		return
	}
	l.mu.Lock()
	over, why := l.state == lost, l.why
	if !over {
		l.onLost = append(l.onLost, cancel)
	}
	l.mu.Unlock()
	if over {
		cancel(l.cause(why))
	}
}

// lose ends the lease, whose lock is lost. The next caller in line need not wait for this holder. lose is called with
// mu held.
func (l *Lease) lose(why error) {
	l.state, l.why = lost, why
	if l.lost != nil {
		close(l.lost)
	}
	for _, cancel := range l.onLost {
		go Tell(cancel, l.cause(why))
	}
	l.leaveLine()
}

// cause returns why the lock was lost, for a function passed to OnLost: a program that holds many locks needs the key.
func (l *Lease) cause(why error) error {
	return fmt.Errorf("locker: holding %s: %w", excerpt.Of(l.ticket.Key), why)
}

// leaveLine makes the next caller in line the head, which acquires the lock anew. If the lease no longer owns the key,
// it does nothing. It is called with mu held.
func (l *Lease) leaveLine() {
	if l.own {
		l.own = false
		l.locks.Leave(l.ticket.Key, &l.alarm)
	}
}

// Tell calls cancel, which a holder has passed to OnLost. A panic of cancel must not end the process.
func Tell(cancel context.CancelCauseFunc, why error) {
	defer func() {
		if v := recover(); v != nil {
			slog.Error("latchkey: a function passed to OnLost has panicked", slog.String("error", scripting.Panic(v)))
		}
	}()
	cancel(why)
}

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
		l.waitForExtension() // which is part of the term that has ended
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
		cancel(why)
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
		go Tell(cancel, why)
	}
	l.leaveLine()
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

// # Renewal

// Ring is called by the alarm. It extends the lease, or finds that the lease has expired.
func (l *Lease) Ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch {
	case l.state != holding:
	case !l.term.Held(now):
		l.lose(l.term.Overdue(now))
	case l.extending != nil: // the extension sets the alarm anew when it ends
		l.locks.SetAlarm(&l.alarm, l, l.term.End())
	case now.Before(l.term.Renewal()):
		l.locks.SetAlarm(&l.alarm, l, l.term.Renewal())
	default:
		_ = l.extend(context.Background(), l.term.Span(now))
	}
}

func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	if d < time.Millisecond {
		return fmt.Errorf("locker: Extend by %v: it must be at least 1ms", d)
	}
	state, err := l.extendHeld(ctx, d)
	switch {
	case state == waiting:
		return errNoLease
	case state >= releasing:
		err = worded{ErrExpired, "the lease was released"} // who has the lock now is not known
	case state == lost && err == nil:
		// A holder that was notified of the loss does not get the lock back. This only asks who has the lock. If the
		// token still has it, the lock must be released.
		err = l.algorithm.Release(ctx, l.ticket.Key, l.Token(), 0)
		if err == nil {
			err = ErrExpired
		}
	}
	if err != nil {
		return fmt.Errorf("locker: extending %s: %w", excerpt.Of(l.ticket.Key), err)
	}
	return nil
}

// extendHeld extends the lease if it is held, and returns what it is afterwards.
func (l *Lease) extendHeld(ctx context.Context, d time.Duration) (state, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waitForExtension()
	var err error
	if l.state == holding {
		err = l.extend(ctx, l.term.AtLeast(time.Now(), d))
		if l.state == holding && err == nil {
			l.term.Prolong()
		}
	}
	return l.state, err
}

// extend makes the lease end d from now. It is called with mu held and no extension under way. It gives mu up during the
// round trip, and takes it again even if the algorithm ends the goroutine.
func (l *Lease) extend(ctx context.Context, d time.Duration) error {
	// A reply after the lease's end would be useless. If the round trip takes that long, the alarm must find that the
	// lease has expired without waiting for the reply.
	ctx, cancel := context.WithDeadline(ctx, l.term.End())
	defer cancel()
	l.term.Asked(time.Now(), d)
	l.locks.SetAlarm(&l.alarm, l, l.term.End())
	token, over := l.term.Token, make(chan struct{})
	l.extending = over
	l.mu.Unlock()
	err := func() error {
		defer func() {
			l.mu.Lock()
			l.extending = nil
			close(over)
		}()
		return l.algorithm.Extend(ctx, l.ticket.Key, token, d)
	}()
	if l.state != holding {
		return err
	}
	now := time.Now()
	why := l.term.Answered(now, err)
	switch {
	case why != nil:
		l.lose(why)
	case err != nil:
		l.locks.SetAlarm(&l.alarm, l, l.term.Retry(now))
	default:
		l.locks.SetAlarm(&l.alarm, l, l.term.Renewal())
	}
	return err
}

// waitForExtension waits until no extension is under way. It is called with mu held, and gives mu up meanwhile.
func (l *Lease) waitForExtension() {
	for l.extending != nil {
		over := l.extending
		l.mu.Unlock()
		<-over
		l.mu.Lock()
	}
}

// # The end

func (l *Lease) Unlock(ctx context.Context) error { return l.UnlockAfter(ctx, 0) }

// UnlockAfter passes the lock on to the next caller of this process. If there is none, it releases the lock.
func (l *Lease) UnlockAfter(ctx context.Context, delay time.Duration) error {
	if delay < 0 {
		return fmt.Errorf("locker: UnlockAfter %v: the delay must not be negative", delay)
	}
	if l.locks == nil {
		return errNoLease
	}
	after := WholeMillis(delay)
	ctx = context.WithoutCancel(ctx) // if ctx is nil, this panics while nothing has changed yet
	token, held, again := l.stop(after > 0)
	if again {
		return l.firstOutcome()
	}
	// The next caller finds the lock free, or already has it. The line moves on even if the algorithm panics.
	err := scripting.ErrExited
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.state, l.outcome = released, err
		if l.unlocked != nil {
			close(l.unlocked)
		}
		l.leaveLine()
	}()
	err = l.release(ctx, token, held, after)
	return err
}

// firstOutcome waits for the first Unlock, and returns its error. To another caller, nil would mean that the lock was
// released.
func (l *Lease) firstOutcome() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == releasing {
		if l.unlocked == nil {
			l.unlocked = make(chan struct{})
		}
		over := l.unlocked
		l.mu.Unlock()
		<-over
		l.mu.Lock()
	}
	return l.outcome
}

// release passes the lock on or releases it, after stop has returned token and held.
func (l *Lease) release(ctx context.Context, token string, held bool, after time.Duration) error {
	key := l.ticket.Key
	if held && after == 0 {
		passed, next, err := l.pass(ctx, token)
		if err != nil {
			return fmt.Errorf("locker: passing %s on: %w", excerpt.Of(key), err)
		}
		if passed {
			return nil
		}
		token = next
	}
	err := l.algorithm.Release(ctx, key, token, after)
	if !held && err == nil {
		err = ErrExpired // Redis had the lock until now, but the holder did not rely on it any more
	}
	switch {
	case err == nil:
		return nil
	case !held:
		return fmt.Errorf("locker: releasing %s: %w (%s)", excerpt.Of(key), err, reason(l.why))
	default:
		return fmt.Errorf("locker: releasing %s: %w", excerpt.Of(key), err)
	}
}

// stop ends the lease, which is not renewed any more. held reports whether the lock was held until now; if not, l.why
// says why. again reports whether an earlier call has ended the lease.
func (l *Lease) stop(cool bool) (token string, held, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.state >= releasing {
		return "", false, true
	}
	held = l.state == holding && l.term.Held(now)
	if l.state == holding && !held {
		l.why = l.term.Overdue(now)
	}
	l.state = releasing
	if l.own {
		l.locks.CancelAlarm(&l.alarm)
	}
	if cool { // an extension that is under way would replace the cool-down
		l.waitForExtension()
	}
	return l.term.Token, held, false
}

// pass passes the lock on from token to the next caller in line, if a caller waits and the process may keep the lock.
// If that caller has left meanwhile, next is the token that has the lock in Redis.
func (l *Lease) pass(ctx context.Context, token string) (passed bool, next string, err error) {
	queue, ok := l.algorithm.(Queue)
	first, waits := l.locks.First(l.ticket.Key)
	now := time.Now()
	if !ok || !waits || l.quota.Over(now) {
		return false, token, nil
	}
	won := Won{Token: NewToken(BondIn(token), first.Label, now), Sent: now, Span: first.Options.Span}
	others, err := queue.Pass(ctx, l.ticket.Key, token, won.Token, won.Span)
	if err != nil {
		if !errors.Is(err, ErrLost) && !errors.Is(err, ErrExpired) { // either token may have the lock
			l.locks.Sweeper.Free(l.ticket.Options, l.algorithm, l.ticket.Key, won.Token, token)
		}
		return false, token, err
	}
	quota := l.quota
	quota.Others = others
	passed = l.locks.Next(l.ticket.Key, first.Label, Anyone, func(n *Lease) {
		l.mu.Lock()
		l.own = false
		l.mu.Unlock()
		n.mu.Lock()
		defer n.mu.Unlock()
		n.quota = quota
		n.begin(won)
	})
	return passed, won.Token, nil
}

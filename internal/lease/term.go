package lease

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

// A Term is the time for which a lock is ours. It is a plain value without a mutex. Its owner, a tenure of package
// records or a Lease, guards it, sends the commands, and tells it the outcomes.
//
//	         Begin               Asked             Answered: nil
//	(zero) ─────────▶ held ─────────────────▶ asked ──────────────▶ held, longer
//	                   ▲ │                     │ │ Answered: unavailable
//	            Limit: └─┘                     │ └─▶ held; it ends as asked, or as before
//	            the next holder's MaxHold      │ Answered: lost, expired
//	                  held ── now >= End ──────┴─▶ over
//
// Invariant (never longer than Redis): End is not after the moment at which Redis lets the lock expire, whatever
// becomes of the command under way. End counts from before the command was sent.
// Invariant (one command): between Asked and Answered there is no other Asked.
// Invariant (limit): no command makes the lock last beyond the limit.
type Term struct {
	Token string // in the lock, as far as Redis has replied

	options *Options
	valid   func(time.Duration) time.Duration // see Cautious; nil: all of a lease
	drift   time.Duration                     // the part of a lease on which the holder must not rely
	end     time.Time                         // of the lock
	limit   time.Time                         // up to when the present holder may have the lock: its MaxHold
	renewed time.Time                         // when the last successful command was sent
	span    time.Duration                     // the lease that this command asked for

	sent     time.Time     // the command under way; zero: there is none
	asked    time.Duration // the lease that this command asks for
	before   time.Time     // end, before this command was sent
	troubled time.Time     // no extension has succeeded since then; zero: none has failed
	trouble  error         // of the last extension
}

// Begin begins the term of a lock that was won, for a holder with these options. valid is that of a Cautious
// algorithm, or nil.
func (t *Term) Begin(won Won, o *Options, valid func(time.Duration) time.Duration) {
	*t = Term{Token: won.Token, options: o, valid: valid, renewed: won.Sent, span: won.Span, end: won.Sent.Add(won.Span)}
	if valid != nil {
		t.end, t.drift = won.Sent.Add(valid(won.Span)), o.Lease-valid(o.Lease)
	}
	t.limit = won.Sent.Add(o.MaxHold)
}

// Limit sets the limit for the next holder, who begins now.
func (t *Term) Limit(now time.Time, maxHold time.Duration) { t.limit = now.Add(maxHold) }

// Prolong lets the holder have the lock until its present end, even beyond MaxHold.
func (t *Term) Prolong() {
	if t.limit.Before(t.end) {
		t.limit = t.end
	}
}

// End returns up to when the present holder may rely on the lock.
func (t *Term) End() time.Time {
	if t.limit.Before(t.end) {
		return t.limit
	}
	return t.end
}

// Held reports whether the present holder may rely on the lock.
func (t *Term) Held(now time.Time) bool { return now.Before(t.End()) }

// Fresh reports whether two thirds of a lease are left, so that the next holder can begin without asking Redis.
func (t *Term) Fresh(now time.Time) bool {
	return t.end.Sub(now) >= min(t.options.Lease, t.limit.Sub(now))*2/3
}

// Span returns the lease that a renewal must ask for now.
func (t *Term) Span(now time.Time) time.Duration {
	return max(time.Millisecond, WholeMillis(min(t.options.Lease, t.limit.Sub(now))))
}

// Renewal returns when the owner must renew the lock next: when two thirds of a lease are left. If the limit does not
// let the lock last longer, a renewal only asks whether the lock is still ours. It does so a third of a lease after the
// last command, but not after the end.
func (t *Term) Renewal() time.Time {
	at := t.end.Add(-t.options.Lease * 2 / 3)
	if t.end.Before(t.limit.Add(-t.drift)) {
		return at
	}
	third := t.renewed.Add(t.options.Lease / 3)
	if at.Before(third) {
		at = third
	}
	if end := t.End(); end.Before(at) {
		at = end
	}
	return at
}

// AtLeast returns the lease that an Extend by d must ask for now, so that it does not shorten what the holder may rely
// on: d, or what is left of the lease that Redis has confirmed.
func (t *Term) AtLeast(now time.Time, d time.Duration) time.Duration {
	return WholeMillis(max(d, t.span-now.Sub(t.renewed)))
}

// Asked notes that a command was sent that makes the lock last d from now.
func (t *Term) Asked(now time.Time, d time.Duration) {
	t.sent, t.asked, t.before = now, d, t.end
	if sooner := t.until(now, d); sooner.Before(t.end) {
		t.end = sooner // from now on the lock may end then, whatever the outcome
	}
}

// until returns when a lease of d ends that was asked for at sent. Redis starts counting later.
func (t *Term) until(sent time.Time, d time.Duration) time.Time {
	if t.valid != nil {
		d = t.valid(d)
	}
	return sent.Add(d)
}

// Answered notes the outcome. It returns why the lock is not ours any more, as an ErrLost, or nil.
func (t *Term) Answered(now time.Time, err error) (lost error) {
	sent := t.sent
	t.sent = time.Time{}
	switch {
	case err == nil:
		t.end, t.renewed, t.span, t.trouble, t.troubled = t.until(sent, t.asked), sent, t.asked, nil, time.Time{}
		return nil
	case errors.Is(err, ErrLost), errors.Is(err, ErrExpired), errors.Is(err, ErrForeign):
		return WhyLost(err)
	}
	// Redis is unavailable. It may be back before the lease ends.
	if t.trouble == nil {
		t.troubled = sent
	}
	t.trouble = err
	if !now.Before(t.end) {
		return t.Overdue(now)
	}
	if !scripting.MaybeDone(err) {
		t.end = t.before
	}
	return nil
}

// Retry returns when a renewal that has failed must be repeated.
func (t *Term) Retry(now time.Time) time.Time {
	at := now.Add(t.options.Lease / 10)
	if end := t.End(); end.Before(at) {
		return end
	}
	return at
}

// # Why a lock was lost
//
// The texts of these errors are for people who read logs. The errors wrap ErrLost, and of this package only those below,
// which are for observers.
var (
	ErrMaxHold   = fmt.Errorf("%w: it was held for longer than MaxHold", ErrLost)
	ErrLeaseOver = fmt.Errorf("%w: its lease expired", ErrLost)
	ErrKeyGone   = fmt.Errorf("%w: its key is gone: deleted, evicted, or forgotten in a failover", ErrLost)
)

// Overdue returns why the term has ended, if no reply has told that the lock is lost.
func (t *Term) Overdue(now time.Time) error {
	switch {
	case !t.end.Before(t.limit.Add(-t.drift)):
		return fmt.Errorf("%w, which is %v", ErrMaxHold, t.options.MaxHold)
	case t.trouble != nil:
		return fmt.Errorf("%w, since no try to extend it has succeeded for %v: %v",
			ErrLeaseOver, now.Sub(t.troubled).Round(time.Millisecond), t.trouble)
	case !t.sent.IsZero(): // the alarm is a little sooner than the timeout of the extension
		return fmt.Errorf("%w, since Redis has not replied to the command sent %v ago",
			ErrLeaseOver, now.Sub(t.sent).Round(time.Millisecond))
	default:
		return fmt.Errorf("%w %v ago, and this process has not tried to extend it: was it paused?",
			ErrLeaseOver, now.Sub(t.end).Round(time.Millisecond))
	}
}

// WhyLost returns why a lock is lost after a round trip with this error.
func WhyLost(err error) error {
	switch {
	case err == nil, err == ErrLost:
		return err
	case errors.Is(err, ErrExpired):
		return ErrKeyGone
	case !errors.Is(err, ErrLost), errors.Is(err, ErrUnavailable):
		return fmt.Errorf("%w: %s", ErrLost, reason(err))
	}
	return err
}

// reason is the text of err without that of ErrLost.
func reason(err error) string { return strings.TrimPrefix(err.Error(), ErrLost.Error()+": ") }

// WholeMillis rounds d up to the milliseconds in which Redis counts. If d were cut, a lease would end in Redis before
// it ends for the holder.
func WholeMillis(d time.Duration) time.Duration {
	return max(d.Truncate(time.Millisecond), (d + time.Millisecond - 1).Truncate(time.Millisecond)) // the sum may overflow
}

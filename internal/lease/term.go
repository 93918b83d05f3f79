package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

// A Term is for how long a lock is ours. It is a plain value: its owner, a tenure of package records or a
// Lease, guards it with a mutex of its own, sends what it asks for, and tells it the outcome.
//
//	         Begin               Asked             Answered: nil
//	(zero) ─────────▶ held ─────────────────▶ asked ──────────────▶ held, longer
//	                   ▲ │                     │ │ Answered: unavailable
//	            Limit: └─┘                     │ └─▶ held; it ends as asked, or as before
//	            the next holder's MaxHold      │ Answered: lost, expired
//	                  held ── now >= End ──────┴─▶ over
//
// Invariant (never longer than Redis): End is not after the moment at which Redis lets the lock expire,
// whatever becomes of what is under way: it counts from before the command was sent.
// Invariant (one question): between Asked and Answered there is no other Asked.
// Invariant (limit): nothing is asked for that would make the lock last beyond the limit.
type Term struct {
	Token string // in the lock, as far as Redis has answered

	options *Options
	valid   func(time.Duration) time.Duration // see Algorithm; nil: all of a lease
	end     time.Time                         // of the lock
	limit   time.Time                         // up to when the present holder may have it: its MaxHold
	renewed time.Time                         // when the last command was sent that made it last

	sent     time.Time     // the command under way; zero: there is none
	asked    time.Duration // for which it asks
	before   time.Time     // end, before it was sent
	troubled time.Time     // no extension has succeeded since then; zero: none has failed
	trouble  error         // of the last one
}

// Begin begins the term of a lock that was won, for a holder with these options.
func (t *Term) Begin(won Won, o *Options, valid func(time.Duration) time.Duration) {
	*t = Term{Token: won.Token, options: o, valid: valid, renewed: won.Sent}
	t.end = t.until(won.Sent, won.Span)
	t.limit = won.Sent.Add(o.MaxHold)
}

// Limit is for the next holder, who begins now.
func (t *Term) Limit(now time.Time, maxHold time.Duration) { t.limit = now.Add(maxHold) }

// Prolong lets the holder have the lock for as long as it lasts now, beyond MaxHold.
func (t *Term) Prolong() {
	if t.limit.Before(t.end) {
		t.limit = t.end
	}
}

// until is when a lease of d ends that was asked for at sent. Redis started counting later.
func (t *Term) until(sent time.Time, d time.Duration) time.Time {
	if t.valid != nil {
		d = t.valid(d)
	}
	return sent.Add(d)
}

// extensible is up to when the lock is extended: an extension up to the limit ends before it by what the
// holder may not rely on.
func (t *Term) extensible() time.Time {
	return t.until(t.limit, t.options.Lease).Add(-t.options.Lease)
}

// End is up to when the present holder may rely on the lock.
func (t *Term) End() time.Time {
	if t.limit.Before(t.end) {
		return t.limit
	}
	return t.end
}

// Held reports whether the present holder may rely on the lock.
func (t *Term) Held(now time.Time) bool { return now.Before(t.End()) }

// Fresh reports whether two thirds of a lease are left, so that the next holder can begin without asking
// Redis.
func (t *Term) Fresh(now time.Time) bool {
	return t.end.Sub(now) >= min(t.options.Lease, t.limit.Sub(now))*2/3
}

// Span is for how long the lock is to be asked for now.
func (t *Term) Span(now time.Time) time.Duration {
	return max(time.Millisecond, WholeMillis(min(t.options.Lease, t.limit.Sub(now))))
}

// Renewal is when the owner has to look next: when two thirds of a lease are left. If the limit does not
// let the lock last longer, a renewal only asks whether it is still ours: a third of a lease after the last
// time, up to the end.
func (t *Term) Renewal(now time.Time) time.Time {
	at := t.end.Add(-t.options.Lease * 2 / 3)
	if t.end.Before(t.extensible()) {
		return at
	}
	if third := t.renewed.Add(t.options.Lease / 3); at.Before(third) {
		at = third
	}
	if end := t.End(); end.Before(at) {
		at = end
	}
	return at
}

// Slack is how much later the owner may look: the end of a lease may not be noticed late.
func (t *Term) Slack(now time.Time) time.Duration {
	at := t.Renewal(now)
	return min(slack(at.Sub(now)), t.End().Sub(at))
}

// Asked notes that a command was sent that makes the lock last d from now.
func (t *Term) Asked(now time.Time, d time.Duration) {
	t.sent, t.asked, t.before = now, d, t.end
	if sooner := t.until(now, d); sooner.Before(t.end) {
		t.end = sooner // from now on it may be so, whatever the answer
	}
}

// Answered notes what came of it. It returns why the lock is not ours any more, as an ErrLost, or nil.
func (t *Term) Answered(now time.Time, err error) (lost error) {
	sent := t.sent
	t.sent = time.Time{}
	switch {
	case err == nil:
		t.end, t.renewed, t.trouble, t.troubled = t.until(sent, t.asked), sent, nil, time.Time{}
		return nil
	case errors.Is(err, ErrLost), errors.Is(err, ErrExpired), errors.Is(err, ErrForeign):
		return Lost(err)
	}
	// Redis is unavailable; it may be back before the lease is over.
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

// Again is when a renewal that has failed is tried again.
func (t *Term) Again(now time.Time) time.Time {
	at := now.Add(t.options.Lease / 10)
	if end := t.End(); end.Before(at) {
		return end
	}
	return at
}

// Overdue is why the term is over, if nobody has taken the lock away.
func (t *Term) Overdue(now time.Time) error {
	switch {
	case !t.end.Before(t.extensible()):
		return fmt.Errorf("%w: it was held for longer than MaxHold, which is %v", ErrLost, t.options.MaxHold)
	case t.trouble != nil:
		return fmt.Errorf("%w: its lease ran out, since no try to extend it has succeeded for %v: %v",
			ErrLost, now.Sub(t.troubled).Round(time.Millisecond), t.trouble)
	default:
		return fmt.Errorf("%w: its lease ran out %v ago, and this process has not tried to extend it: was it paused?",
			ErrLost, now.Sub(t.end).Round(time.Millisecond))
	}
}

// WholeMillis rounds d up to what Redis counts in. If it were cut short there, Redis would end a lease
// before the holder does.
func WholeMillis(d time.Duration) time.Duration {
	return max(d.Truncate(time.Millisecond), (d + time.Millisecond - 1).Truncate(time.Millisecond)) // the sum may overflow
}

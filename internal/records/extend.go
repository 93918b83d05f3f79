package records

import (
	"context"
	"errors"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// Ring is called by the alarm. It extends the lock, or finds that the present hold can no longer rely on it.
// A commit extends the lock as well.
func (t *tenure) Ring() {
	t.mu.Lock()
	defer t.unlock()
	t.rings = time.Time{}
	now := time.Now()
	switch {
	case t.hold == nil: // the tenure is over, or the next hold is renewed in time
	case !t.term.Held(now):
		t.lose(t.term.Overdue(now))
	case t.sending, !t.endingSince.IsZero():
		t.arm(t.term.End())
	case now.Before(t.term.Renewal()):
		t.arm(t.term.Renewal())
	default:
		t.extend(now)
	}
}

// extend makes the lock last longer, and the record outlast the lock. If another process has written the
// record, the present hold learns that the lock is lost.
func (t *tenure) extend(now time.Time) {
	span := t.term.Span(now)
	x := scripting.RoundTrip{
		Script: extendScript,
		Keys:   t.keys.forScript(),
		Args:   []any{t.term.Token, span.Milliseconds(), t.revision},
	}
	// A reply after the lease's end would be useless. If the round trip takes that long, the alarm must find
	// that the lease has expired without waiting for the reply.
	ctx, cancel := context.WithDeadline(context.Background(), t.term.End())
	defer cancel()
	t.term.Asked(now, span)
	t.arm(t.term.End())
	err := readReply(t.exchange(ctx, now, x))
	heard := time.Now()
	t.engine.notice(ctx, heard, t.id, "extended", "", whyNotExtended(err))
	lost := t.term.Answered(heard, err)
	switch {
	case t.over != nil:
	case lost != nil:
		t.fail(lost, "")
	case err != nil:
		t.arm(t.term.Retry(heard))
	default:
		t.arm(t.term.Renewal())
	}
}

// whyNotExtended returns err as observers are told it: an ErrLost if Redis has replied that the lock is lost.
func whyNotExtended(err error) error {
	if errors.Is(err, lease.ErrLost) || errors.Is(err, lease.ErrExpired) || errors.Is(err, lease.ErrForeign) {
		return lease.WhyLost(err)
	}
	return err
}

// renewInTime makes the alarm ring no later than the present hold needs it.
func (t *tenure) renewInTime() {
	at := t.term.Renewal()
	if t.rings.IsZero() || at.Before(t.rings) {
		t.arm(at)
	}
}

// arm makes the alarm ring at the given time, or at once if it has passed.
func (t *tenure) arm(at time.Time) {
	t.rings = at
	t.engine.lines.SetAlarm(&t.alarm, t, at)
}

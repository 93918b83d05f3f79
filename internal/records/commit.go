package records

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// The commits of a tenure. There is one round trip at a time, so that it is always known which token and
// which record Redis has. All methods are called with mu held.

// letRun gives mu up for a moment, so that the next holds, which can go on now, end before the next commit,
// which then stores them, too. With 100 requests for one session in two processes that makes a third fewer
// round trips.
func (t *tenure) letRun() {
	t.unlock()
	runtime.Gosched()
	t.mu.Lock()
}

// settle returns when it is known whether version is stored. vacant: the caller has left the tenure vacant,
// and goes on until another hold has begun, or the lock is released. Whoever finds no round trip under way
// sends the next commit, for all.
func (t *tenure) settle(ctx context.Context, version int, vacant bool) {
	if vacant {
		t.vacated++
		defer func() { t.vacated-- }()
	}
	begun, since := t.begun, t.since
	for {
		// If the tenure is over, a commit that is under way still counts, unless its outcome will not be known.
		settled := t.stored >= version || t.over != nil && (!t.sending || errors.Is(t.over, ErrUnavailable))
		if settled && (!vacant || t.begun != begun || t.over != nil) {
			return
		}
		if t.sending {
			t.waitForOne()
			continue
		}
		t.waitsSince(since)
		t.commit(ctx)
	}
}

// commit makes all versions up to the newest stored, and decides what becomes of the lock: the present hold
// keeps it, the next in line gets it, or else it is released. It is called when no round trip is under way.
// It is for others, too, so it does not end with ctx, but by latest.
func (t *tenure) commit(ctx context.Context) {
	next, returned := token{}, false
	defer func() {
		if returned {
			return
		}
		err := scripting.ErrExited
		if v := recover(); v != nil { // of a Content, perhaps another hold's
			err = scripting.Panicked(v)
		}
		t.fail(err, next.text)
		t.idle.Broadcast() // those that wait for this commit, which may not have been sent
	}()
	now, version, vacant := time.Now(), t.newest, t.hold == nil
	next = t.next(now)
	x, revision := t.roundTrip(next, now)
	ctx = context.WithoutCancel(ctx)
	if t.isShort(now) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, t.latest())
		defer cancel()
	}
	t.since = time.Time{}
	if next.text != "" {
		t.term.Asked(now, next.span)
	}
	others, err := committed(t.exchange(ctx, now, x))
	returned = true
	clear(t.args[1:]) // a record may be large
	if err != nil {
		t.fail(err, next.text)
		return
	}
	heard := time.Now()
	if next.text != "" {
		_ = t.term.Answered(heard, nil)
	}
	t.term.Token, t.revision, t.others, t.stored, t.heard, t.asked = next.text, revision, others, version, heard, now
	switch {
	case t.over != nil: // it lapsed meanwhile, and its next token is nobody's
		t.sweep(next.text)
	case next.text == "":
		t.lapse(errFreed)
	case vacant: // if the next in line has left, settle sends once more
		t.grant(next.label)
	case t.hold != nil:
		t.renewInTime(heard) // the alarm may have rung meanwhile
	}
}

// A token is by which the lock is held after a commit; with an empty text it is released.
type token struct {
	text, label string
	span        time.Duration
}

// next returns the token of the present hold or, if there is none, of the next in line.
func (t *tenure) next(now time.Time) (next token) {
	if t.hold != nil {
		next = token{label: t.hold.ticket.Label, span: t.term.Span(now)}
	} else if first, waits := t.engine.lines.First(t.lock); waits && t.mayPass(now) {
		next = token{label: first.Label, span: first.Options.Span}
	} else {
		return token{}
	}
	next.text = lease.NewToken(lease.BondIn(t.term.Token), next.label, now)
	return next
}

// roundTrip returns the commit of all versions, which makes next the holder, and the revision of the record
// afterwards.
func (t *tenure) roundTrip(next token, now time.Time) (x scripting.RoundTrip, revision string) {
	x = scripting.RoundTrip{Script: commitScript, Keys: t.keys.forScript()}
	mark, revision := t.mark, t.revision
	ttl, record, span, quiet, staged := any(""), any(""), any(""), any(""), any("")
	if t.newest > 0 || t.read == nil { // a record that cannot be read is left as it is
		// The time to live is what the last version wants or, without one, what the take wants, since a request
		// has come for the session. While the session is held, the record outlasts the lock.
		ms, isQuiet := t.write.ttl, t.write.quiet
		if t.newest == 0 {
			ms, isQuiet = t.terms.expiry(&t.record, now), t.terms.Quiet
		}
		switch {
		case isQuiet: // the script extends it if the lock needs that
			quiet = yes
		case next.text != "":
			ms = max(ms, (next.span + outlast).Milliseconds())
		}
		ttl = ms
	}
	if t.written > t.stored {
		revision = t.record.revision
		if t.ended {
			mark, x.Keys = "", t.keys.withList()
			record = formatTombstone(revision, t.record.Created)
		} else if text := t.record.text(t.box); len(text) < stagedFrom {
			record = text
		} else {
			record, staged = stage(&x, revision, text), yes
		}
	}
	if t.args[0] != t.term.Token { // it has changed
		t.args[0] = t.term.Token
	}
	if next.text != "" {
		span = next.span.Milliseconds()
	}
	x.Args = append(t.args[:1], t.revision, ttl, record, mark, next.text, span, quiet, staged)
	for len(x.Args) > 4 && x.Args[len(x.Args)-1] == "" { // an argument costs Redis 1 % of a commit
		x.Args = x.Args[:len(x.Args)-1]
	}
	return x, revision
}

// outlast is by how much a record outlasts its lock. The scripts know it.
const outlast = 2 * time.Second

// waitsSince notes since when a hold that ends waits for its commit.
func (t *tenure) waitsSince(begun time.Time) {
	if t.since.IsZero() || begun.Before(t.since) {
		t.since = begun
	}
}

// latest is when those that wait for the next commit have their answer. A hold that ends has the time
// of one round trip, and an eighth more, however many it needs: the one that is under way, its own, and
// before those what Renew needs.
func (t *tenure) latest() time.Time {
	most := t.engine.options.Timeout
	return t.since.Add(most).Add(most / 8) // the sum may overflow
}

// isShort reports whether that is sooner than a round trip may be over that begins now.
func (t *tenure) isShort(now time.Time) bool {
	return !t.since.IsZero() && now.Sub(t.since) > t.engine.options.Timeout/8
}

// waitForOne waits until the round trip that is under way is over. A hold that has waited for one
// that Redis has not answered does not wait for another one as well.
func (t *tenure) waitForOne() {
	if now := time.Now(); t.isShort(now) { // it may have begun since: an extension, while Renew did something else
		latest := t.latest()
		defer time.AfterFunc(latest.Sub(now), func() {
			t.mu.Lock()
			defer t.unlock()
			if t.sending && t.over == nil && t.latest() == latest {
				t.fail(errNoTime, "")
			}
		}).Stop()
	}
	checked(t)
	t.idle.Wait()
	if !t.sending && t.over == nil && t.silence != nil {
		t.fail(t.silence, "")
	}
}

var errNoTime = fmt.Errorf("%w: another round trip took all of the time: %w", ErrUnavailable, context.DeadlineExceeded)

// exchange runs a script, asked now, and gives mu up meanwhile. It takes it again also if the client ends the
// goroutine.
func (t *tenure) exchange(ctx context.Context, asked time.Time, x scripting.RoundTrip) (reply scripting.Reply, err error) {
	t.sending = true
	t.unlock()
	defer func() {
		t.mu.Lock()
		t.sending, t.silence = false, nil
		// An extension is not waited for beyond the end of its lease. What took less than a
		// quarter of Timeout leaves time for another one.
		if err != nil && scripting.TimedOut(err) && !scripting.Moving(err) && time.Since(asked) >= t.engine.options.Timeout/4 {
			t.silence = err
		}
		t.idle.Broadcast()
	}()
	_, reply, err = t.engine.runner.RoundTrip(ctx, x)
	return reply, err
}

// What commit.lua answers. Where a write was refused, but an earlier try of it
// may have been done, the error wraps ErrUnavailable, too: it may be stored. Why it was refused
// follows.
const (
	replyLost      = 0
	replyDone      = 1
	replyOthers    = 2 // done, and other processes wait
	replyLostAgain = 3
)

// committed reads the reply of commit.lua. others reports whether other
// processes wait.
func committed(reply scripting.Reply, err error) (others bool, _ error) {
	switch n, ok := reply.Int(); {
	case err != nil:
		return false, err
	case !ok:
		return false, refused(reply)
	default:
		return n == replyOthers, nil
	}
}

// refused reads the reply of a commit that was refused.
func refused(reply scripting.Reply) error {
	n, ok := reply.IntAt(0)
	why := readReplyAt(reply, 1)
	if ok && why != nil && !errors.Is(why, ErrUnavailable) {
		switch n {
		case replyLost:
			return lease.WhyLost(why)
		case replyLostAgain:
			return fmt.Errorf("%w; an earlier try may have been done, since its reply was lost: %w", lease.WhyLost(why), ErrUnavailable)
		}
	}
	return lease.Unexpected(reply)
}

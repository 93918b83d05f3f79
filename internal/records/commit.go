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

// The commits of a tenure. At most one round trip is under way, so the process always knows which token and
// which record Redis has. All methods are called with mu held.

// letRun unlocks mu for a moment. Then the next holds, which can go on now, may end before the next commit,
// which stores their versions as well. With 100 requests for one session in two processes that saves a third
// of the round trips.
func (t *tenure) letRun() {
	t.unlock()
	runtime.Gosched()
	t.mu.Lock()
}

// settle returns when it is known whether version is stored. Each goroutine that finds no round trip under
// way sends the next commit, which is for all versions. If vacant is true, the caller has left the tenure
// vacant. Then settle goes on until another hold has begun, or the tenure is over.
func (t *tenure) settle(ctx context.Context, version int, vacant bool) {
	if vacant {
		t.vacated++
		defer func() { t.vacated-- }()
	}
	holders, since := t.holders, t.endingSince
	for {
		// If the tenure is over, a commit that is under way still counts, unless Redis is unavailable.
		settled := t.stored >= version || t.over != nil && (!t.sending || errors.Is(t.over, ErrUnavailable))
		if settled && (!vacant || t.holders != holders || t.over != nil) {
			return
		}
		if t.sending {
			t.waitForOne()
			continue
		}
		t.waitsSince(since) // the deadline stays, although the commit before has cleared it
		t.commit(ctx)
	}
}

// commit stores all versions up to the newest, and decides what becomes of the lock: the present hold keeps
// it, the next request in line gets it, or it is released. It is called when no round trip is under way.
// Other requests depend on it, so it does not end with ctx, but at latest.
func (t *tenure) commit(ctx context.Context) {
	next, returned := token{}, false
	defer func() {
		if returned {
			return
		}
		err := scripting.ErrExited
		if v := recover(); v != nil { // in a Content, perhaps another hold's
			err = scripting.Panicked(v)
		}
		t.fail(err, next.text)
	}()
	now, version, vacant := time.Now(), t.newest, t.hold == nil
	next = t.next(now)
	x, revision := t.roundTrip(next, now)
	t.visited = time.Time{}
	x.Holds = version - t.stored
	ctx = withoutCancel(ctx)
	if t.isShort(now) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, t.latest())
		defer cancel()
	}
	t.endingSince = time.Time{}
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
	t.term.Token, t.revision, t.others, t.stored, t.repliedAt, t.sentAt = next.text, revision, others, version, heard, now
	switch {
	case t.over != nil: // the tenure ended meanwhile, so no hold has the next token
		t.sweep(true, next.text)
	case next.text == "":
		t.lapse(errFreed)
		if others {
			t.engine.notice(ctx, heard, t.id, "handed_over", "", nil)
		}
	case vacant: // if that request has left, settle sends another commit
		t.grant(next.label)
	case t.hold != nil:
		t.renewInTime() // the alarm may have rung meanwhile
	}
}

// A token is the lock's value after a commit. If its text is empty, the commit releases the lock.
type token struct {
	text, label string
	span        time.Duration
}

// next returns a new token for the present hold or, if there is none, for the next request in line.
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

// roundTrip returns the commit of all versions, which makes next the holder. It also returns the revision of
// the record after the commit.
func (t *tenure) roundTrip(next token, now time.Time) (x scripting.RoundTrip, revision string) {
	x = scripting.RoundTrip{Script: commitScript, Keys: t.keys.forScript()}
	mark, revision := t.mark, t.revision
	ttl, quiet := t.expiry(next, now)
	record, span, staged := any(""), any(""), any("")
	if t.written > t.stored {
		revision = t.record.revision
		if t.ended {
			mark, x.Keys = "", t.keys.withList()
			record = formatTombstone(revision, t.record.Created, t.record.Data)
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

// expiry returns two arguments of the commit: the record's time to live, in ms, and what is left of the idle timeout if
// the commit must not extend that. If the record cannot be read, both are empty: it is left as it is.
//
// The time to live is that of the last version. If there is no version, it is that of the take, since a request has used
// the session. While the session is held, the record outlasts the lock.
func (t *tenure) expiry(next token, now time.Time) (ttl, quiet any) {
	if t.newest == 0 && t.unusable != nil {
		return "", ""
	}
	ms, isQuiet := t.ttl, t.quiet
	switch {
	case !t.visited.IsZero():
		ms = max(1, ms-now.Sub(t.visited).Milliseconds())
	case t.newest == 0:
		ms, isQuiet = t.terms.expiry(&t.record, now), t.terms.Quiet
	}
	quiet = ""
	switch {
	case isQuiet: // the script extends it if the lock needs that
		left := t.idleLeft(ms, now)
		if _, waits := t.engine.lines.First(t.lock); waits && next.text == "" { // a request of this process takes it next
			left = max(left, outlast.Milliseconds())
		}
		quiet = left
	case next.text != "":
		ms = max(ms, (next.span + outlast).Milliseconds())
	}
	return ms, quiet
}

// idleLeft returns for how many ms the record would still live if this tenure had not extended it. It returns ttl if
// that is not known.
//
// While a job has the lock, a visitor may read the session, and extend it. The script sees that by the time that the
// record has left: at least a second more than a record that only outlasts its lock. If a session has no longer timeouts
// than that, the script cannot tell, and the record keeps the time that it has.
func (t *tenure) idleLeft(ttl int64, now time.Time) int64 {
	extended := min(t.terms.idle(&t.record)-now.Sub(t.began), t.terms.left(&t.record, now))
	if t.idleEnd.IsZero() || extended <= t.engine.locking.Span+outlast+time.Second {
		return ttl
	}
	return max(1, t.idleEnd.Sub(now).Milliseconds())
}

// outlast is by how much a record outlasts its lock. The scripts know it.
const outlast = 2 * time.Second

// waitsSince notes that a hold that began to end at begun waits for a commit.
func (t *tenure) waitsSince(begun time.Time) {
	if t.endingSince.IsZero() || begun.Before(t.endingSince) {
		t.endingSince = begun
	}
}

// latest is the deadline of the next commit. By then each hold that waits for the commit has its outcome. A hold that
// ends has nine eighths of Timeout, however many round trips that takes: for Renew's new record, for the commit that is
// under way, and for its own.
func (t *tenure) latest() time.Time {
	most := t.engine.options.Timeout
	return t.endingSince.Add(most).Add(most / 8) // the sum may overflow
}

// isShort reports whether a round trip that begins now could last beyond latest.
func (t *tenure) isShort(now time.Time) bool {
	return !t.endingSince.IsZero() && now.Sub(t.endingSince) > t.engine.options.Timeout/8
}

// waitForOne waits for the end of the round trip that is under way. If Redis did not reply to that, the
// tenure fails: a hold does not wait for two such round trips.
func (t *tenure) waitForOne() {
	if now := time.Now(); t.isShort(now) { // the round trip may have begun later: an extension, during the first step of Renew
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

var errNoTime = fmt.Errorf("%w: another round trip used up the time: %w", ErrUnavailable, context.DeadlineExceeded)

// exchange runs a script, which is sent at asked, and unlocks mu meanwhile. It locks mu again even if the
// client ends the goroutine.
func (t *tenure) exchange(ctx context.Context, asked time.Time, x scripting.RoundTrip) (reply scripting.Reply, err error) {
	t.sending = true
	t.unlock()
	defer func() {
		t.mu.Lock()
		t.sending, t.silence = false, nil
		// A round trip that took less than a quarter of Timeout leaves time for another one: an extension
		// near the end of its lease, for example.
		if err != nil && scripting.TimedOut(err) && !scripting.Moving(err) && time.Since(asked) >= t.engine.options.Timeout/4 {
			t.silence = err
		}
		t.idle.Broadcast()
	}()
	_, reply, err = t.engine.runner.RoundTrip(ctx, x)
	return reply, err
}

// The replies of commit.lua. Behind replyLost and replyLostAgain follows why the write was refused. With
// replyLostAgain an earlier try may have stored it, and the error wraps ErrUnavailable, too.
const (
	replyLost      = 0
	replyDone      = 1
	replyOthers    = 2 // done, and other processes wait
	replyLostAgain = 3
)

// committed reads the reply of commit.lua. others is true if other processes wait.
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

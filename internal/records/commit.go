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

// The round trips of a tenure with Redis. There is one at a time, so that it is always known which
// token and which record Redis has. All methods but Extend are called with mu held.

// flush stores versions, unless somebody else does, until one is stored.
//
// It lets those go first that can go on now: the next holds, which the same round trip then stores,
// too. With 100 requests for one session in two processes that makes a third fewer round trips.
func (t *tenure) flush(ctx context.Context, version int) {
	t.mu.Unlock()
	runtime.Gosched()
	t.mu.Lock()
	for t.stored < version && t.err == nil {
		if t.sending || t.leaving {
			t.waitForOne()
		} else {
			t.send(ctx, t.lease.Token(), t.lease.Span())
		}
	}
}

// send makes all versions up to the newest stored, and gives the lock to the next holder for span;
// to "" frees it. It is called when no round trip is under way. It is for others, too, so it does
// not end with ctx, but by latest.
func (t *tenure) send(ctx context.Context, to string, span time.Duration) {
	returned := false
	defer func() {
		if returned {
			return
		}
		err := scripting.ErrExited
		if v := recover(); v != nil { // of a Content, perhaps another hold's
			err = scripting.Panicked(v)
		}
		t.fail(err, to)
		t.idle.Broadcast() // those that wait for this round trip, of which there may have been none
	}()
	version := t.newest
	x := scripting.RoundTrip{Script: commitScript, Keys: t.keys[:ownKeys]}
	var record, ttl any = "", ""
	expected := t.base
	if version > 0 || t.read == nil { // what cannot be read is left as it is
		left := t.timeToLive(to, span)
		expected, left = quietly(expected, left)
		ttl = left
	}
	base := t.base
	if t.written > t.stored {
		base = t.record.name
		record = stage(&x, base, t.write.text(t.box))
	}
	if t.args[0] != t.token { // it has changed
		t.args[0] = t.token
	}
	x.Args = append(t.args[:1], expected, ttl, record)
	if to != "" {
		x.Args = append(x.Args, to, span.Milliseconds())
	}
	t.ask(&x, base)
	ctx, asked := context.WithoutCancel(ctx), time.Now()
	if t.isShort(asked) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, t.latest())
		defer cancel()
	}
	t.since = time.Time{}
	others, err := committed(t.exchange(ctx, asked, x))
	returned = true
	clear(t.args[1:]) // a record may be large
	if err != nil {
		t.fail(err, to)
		return
	}
	t.token, t.base, t.others, t.stored, t.heard, t.asked = to, base, others, version, time.Now(), asked
	if t.err != nil { // the tenure was given up meanwhile, and its next token is nobody's
		t.lease.Sweep(to)
	}
}

// latest is when those that wait for the next round trip have their answer. A hold that ends has the time
// of one round trip, and an eighth more, however many it needs: the one that is under way, its own, and
// before those what Renew needs.
func (t *tenure) latest() time.Time {
	most := t.store.options.Timeout
	return t.since.Add(most).Add(most / 8) // the sum may overflow
}

// isShort reports whether that is sooner than a round trip may be over that begins now.
func (t *tenure) isShort(now time.Time) bool {
	return !t.since.IsZero() && now.Sub(t.since) > t.store.options.Timeout/8
}

// quietly returns base and the time to live as the scripts take them: a negative one is that of a
// holder that is not the session's visitor.
func quietly(base string, ttl int64) (string, int64) {
	if ttl < 0 {
		return "~" + base, -ttl
	}
	return base, ttl
}

// ask makes x, which is to write the record base, ask for a user's mark; see commit.lua.
func (t *tenure) ask(x *scripting.RoundTrip, base string) {
	switch {
	case len(t.keys) < userKeys:
	case base != t.base && t.write.ended:
		x.Args = append(x.Args, "")
		askToEnd(x, t.keys)
	default:
		x.Args = append(x.Args, t.mark)
		ask(x, t.keys)
	}
}

// outlast is by how much a record outlasts its lock, as the scripts see to it, too.
const outlast = 2 * time.Second

// timeToLive is that of the record after a commit, in ms: what the last version wants, or the
// take, since somebody has come for the session; but while it is held, no less than its lock.
func (t *tenure) timeToLive(to string, span time.Duration) int64 {
	ttl := t.write.ttl
	if t.newest == 0 {
		ttl = t.terms.ttl(&t.record, time.Now())
	}
	if to != "" && ttl > 0 { // else the script sees to it
		ttl = max(ttl, (span + outlast).Milliseconds())
	}
	return ttl
}

// Extend implements [lease.Extender]: the record outlasts the lock. The holder of a
// record that another has written learns that it is lost.
func (t *tenure) Extend(ctx context.Context, _, token string, d time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	// An extension that comes late is no reason to fail, and a commit extends the lease as well.
	for (t.sending || !t.since.IsZero()) && t.err == nil {
		t.idle.Wait()
	}
	switch {
	case t.err != nil:
		return t.err
	case t.lease != nil && t.lease.Token() != token:
		return lease.ErrExpired // meanwhile: the next hold may be for longer than d
	}
	x := scripting.RoundTrip{
		Script: extendScript,
		Keys:   t.keys[:2],
		Args:   []any{t.token, max(1, d.Milliseconds()), t.base},
	}
	ask(&x, t.keys)
	err := lease.Verdict(t.exchange(ctx, time.Now(), x))
	if errors.Is(err, ErrLost) && t.lease != nil {
		t.fail(err, "")
	}
	return err
}

// fail ends the tenure: what is not stored is void. The lock may be left to the token that Redis
// has, or to the next one, so both are swept in the background: nobody waits for another round trip
// after one that has failed. With ErrLost, which says that nothing was stored, it is not called
// while a commit is under way.
func (t *tenure) fail(err error, next string) {
	t.err = err
	if scripting.Unanswered(err) && !scripting.Moving(err) {
		t.lease.Dismiss(err) // before Lose, which gives the turn to the first of them
	}
	t.lease.Lose(err) // the present hold has built on what is void
	t.lease.Sweep(t.token, next)
}

// settled waits until no round trip is under way, unless the tenure has failed, and returns why.
func (t *tenure) settled() error {
	for t.sending && t.err == nil {
		t.waitForOne()
	}
	return t.err
}

// waitForOne waits until the round trip that is under way is over. A hold that has waited for one
// that Redis has not answered does not wait for another one as well.
func (t *tenure) waitForOne() {
	if now := time.Now(); t.isShort(now) { // it may have begun since: an extension, while Renew did something else
		latest := t.latest()
		defer time.AfterFunc(latest.Sub(now), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.sending && t.err == nil && t.latest() == latest {
				t.fail(errNoTime, "")
				t.idle.Broadcast()
			}
		}).Stop()
	}
	t.idle.Wait()
	if !t.sending && t.err == nil && t.silence != nil {
		t.fail(t.silence, "")
	}
}

var errNoTime = fmt.Errorf("%w: another exchange took all of the time: %w", ErrUnavailable, context.DeadlineExceeded)

// exchange runs a script, asked now, and gives mu up meanwhile. It takes it again also if the client ends the
// goroutine.
func (t *tenure) exchange(ctx context.Context, asked time.Time, x scripting.RoundTrip) (reply scripting.Reply, err error) {
	t.sending = true
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.sending, t.silence = false, nil
		// An extension is not waited for beyond the end of its lease. What took less than a
		// quarter of Timeout leaves time for another one.
		if err != nil && scripting.Unanswered(err) && !scripting.Moving(err) && time.Since(asked) >= t.store.options.Timeout/4 {
			t.silence = err
		}
		t.idle.Broadcast()
	}()
	_, reply, err = t.store.runner.RoundTrip(ctx, x)
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
	why := lease.VerdictAt(reply, 1)
	if ok && why != nil && !errors.Is(why, ErrUnavailable) {
		switch n {
		case replyLost:
			return lease.Lost(why)
		case replyLostAgain:
			return fmt.Errorf("%w; an earlier try may have been done, since its reply was lost: %w", lease.Lost(why), ErrUnavailable)
		}
	}
	return lease.Unexpected(reply)
}

package records

import (
	"context"
	"errors"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// # Taking a session without a script
//
// A script costs Redis three times as much as the commands in it. So the first try has none. It is
//
//	SET lock token NX PX lease
//	PTTL record
//	MGET lock record
//
// in one write. The reply to MGET decides: if it has our token, we have the lock, and the same command has
// read the record under the lock. That is true even if Redis has executed SET long ago, or twice. Only its
// own SET, or a script, puts a token into a lock. So either the token has had the lock since the first SET,
// or other holders have had the lock in between. In the second case the commit finds another record than the
// one read here, and is refused. The token also identifies the reply: no other reply contains it.
//
// In every unusual case take.lua follows, with the same token: there is no record, or a tombstone; the record
// is too large, too old, or of another form or type; it would not outlast the lease; a reply makes no sense;
// the connection broke; Redis is full. take.lua finds that the token has the lock, or releases the lock. If
// another holder has the lock, the next try has a place in the queue, and uses take.lua.

// A taking is the [lease.Algorithm] of a session's lock: the spin lock, except that Take reads the record as
// well.
type taking struct {
	lease.Spin
	hold   *Hold
	keys   sessionKeys
	tenure *tenure // of the try that has acquired the lock
	// unsure: SET may have been done, so the token may have the lock for the rest of a lease.
	unsure bool
	// The memory of the first try's commands, so that they need no allocations.
	set      [6]any
	left     [2]any
	read     [4]any
	commands [3]transport.Command
}

// Take implements [lease.Algorithm].
func (k *taking) Take(ctx context.Context, _, token, place string, span time.Duration) (found lease.Attempt, err error) {
	if place != "" || k.unsure || k.hold.terms.TTL <= span+outlast { // the record would not outlast the lease
		return k.byScript(ctx, token, place, span)
	}
	begun := time.Now()
	found, done, err := k.plainly(ctx, token, span, begun)
	if done {
		return found, err
	}
	broken := err != nil
	// Both tries together take no longer than one round trip may.
	ctx, cancel := context.WithDeadline(ctx, begun.Add(k.hold.engine.options.Timeout))
	defer cancel()
	found, err = k.byScript(ctx, token, place, span)
	// SET may have been done although the script failed, or may still be done.
	found.MaybeTaken = found.MaybeTaken || broken || errors.Is(err, ErrUnavailable)
	return found, err
}

// byScript is Take with take.lua.
func (k *taking) byScript(ctx context.Context, token, place string, span time.Duration) (lease.Attempt, error) {
	now, idle := time.Now(), k.hold.terms.TTL
	if k.hold.terms.Quiet {
		idle = 0 // the record only outlasts the lock
	}
	x := scripting.RoundTrip{Script: takeScript, Keys: k.keys.forScript(), Args: []any{token, span.Milliseconds(),
		k.hold.terms.MaxBytes, k.hold.terms.outlived(now), place, idle.Milliseconds(), now.UnixMilli()}}
	if k.hold.terms.Quiet {
		x.Args = append(x.Args, yes)
	}
	_, reply, err := k.hold.engine.runner.RoundTrip(ctx, x)
	if err != nil {
		return lease.Attempt{}, err
	}
	return k.taken(reply, token, now)
}

// plainly is Take without a script. If done is false, take.lua must follow.
func (k *taking) plainly(ctx context.Context, token string, span time.Duration, begun time.Time) (_ lease.Attempt, done bool, _ error) {
	record, lock := k.keys.record, k.keys.lock
	k.commands = [...]transport.Command{
		append(k.set[:0], "SET", lock, token, "NX", "PX", span.Milliseconds()),
		append(k.left[:0], "PTTL", record),
		append(k.read[:0], "MGET", lock, record),
	}
	ofUser, asked := k.keys.ofUser(), 2
	if ofUser {
		k.commands[2], asked = append(k.commands[2], k.keys.mark), 3
	}
	replies, err := k.hold.engine.runner.RoundTripPlain(ctx, lock.(string), k.commands[:]...)
	if err != nil {
		k.unsure = true
		again := scripting.Broken(err)
		return lease.Attempt{}, !again, err
	}
	left, _ := replies[1].(int64)
	values, _ := replies[2].([]any)
	if len(values) != asked || time.Duration(left)*time.Millisecond <= span+outlast {
		return lease.Attempt{}, false, nil
	}
	holder, held := scripting.Text(values[0])
	if held && string(holder) != token {
		return lease.HeldBy(string(holder)), replies[0] == nil, nil
	}
	text, _ := scripting.Text(values[1])
	heard, f := time.Now(), k.form(token)
	parsed, err := parse(text, f)
	if !held || err != nil || len(text) > k.hold.terms.MaxBytes || k.hold.terms.expired(&parsed, heard) {
		return lease.Attempt{}, false, nil
	}
	t := k.begin(begun, heard)
	if ofUser {
		mark, _ := scripting.Text(values[2])
		t.mark = string(mark)
		if !alive(string(mark), k.keys, parsed.epoch) {
			return lease.Attempt{}, false, nil
		}
	}
	parsed.unclaimed = belowOf(t.mark.(string), k.hold.id)
	t.record, t.revision, t.size, t.args[0], t.box = parsed, parsed.revision, int32(len(text)), k.set[2], f.box
	k.tenure = t
	return lease.Attempt{Taken: true}, true, nil
}

// begin returns a new tenure. The take was sent at asked, and its reply arrived at heard.
func (k *taking) begin(asked, heard time.Time) *tenure {
	t := &tenure{engine: k.hold.engine, id: k.hold.id, keys: k.keys, lock: k.keys.lock.(string), terms: k.hold.terms, repliedAt: heard, sentAt: asked, mark: ""}
	t.idle.L = &t.mu
	return t
}

// form returns the form of the session's records. token has the same bond as they have.
func (k *taking) form(token string) form {
	return form{lease.BondIn(token), k.keys.ofUser(), k.hold.engine.box(k.hold.id)}
}

// taken reads the reply of take.lua. If the script has acquired the lock, a tenure begins.
func (k *taking) taken(reply scripting.Reply, token string, asked time.Time) (lease.Attempt, error) {
	state, _ := reply.IntAt(0)
	if state == stateBusy {
		return lease.ReadHolder(reply)
	}
	t, ok, f := k.begin(asked, time.Now()), true, k.form(token)
	t.box = f.box
	switch state {
	case stateFound:
		var others int64
		others, ok = reply.IntAt(2)
		mark, marked := reply.TextAt(3)
		t.others, t.mark, ok = others != 0, mark, ok && marked
		if left, quiet := reply.IntAt(4); quiet && k.hold.terms.Quiet && left >= 0 {
			t.idleEnd = t.repliedAt.Add(time.Duration(left) * time.Millisecond)
		}
	case stateTooLarge:
		t.revision, ok = reply.TextAt(2)
	case stateWrongType:
		t.revision = foreignName
	}
	text, err := found(reply, f.box)
	if !ok {
		err = lease.Unexpected(reply)
	}
	if errors.Is(err, ErrGone) { // it stays ended: the requests that wait behind need not ask one after another
		k.hold.engine.lines.Dismiss(k.keys.lock.(string), err)
	}
	if err != nil && !unusable(err) {
		return lease.Attempt{}, err
	}
	t.unusable = err
	if err == nil {
		t.size = int32(len(text))
		t.record, t.unusable = parse(text, f)
		t.record.unclaimed = belowOf(t.mark.(string), k.hold.id)
		t.revision = t.record.revision
	}
	k.tenure = t
	return lease.Attempt{Taken: true}, nil
}

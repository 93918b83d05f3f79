package records

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// A tenure is the time in which one process has one session: from the round trip
// that takes the lock and reads the record to the one that frees it. In between
// its requests hold the session one after another, and build on what is in memory.
//
// # Pipeline and group commit
//
// When a hold ends, its version of the record becomes the newest, and the next request in line
// starts on it at once, while the version is still on its way to Redis. Only one round trip is under
// way at a time. What ends meanwhile goes into the next one: the newest version contains them all.
// How far the requests may run ahead of Redis is bounded, by number and by time.
//
// # Why this is serialisable
//
// The holds of a tenure are one after another, each on the state that the one
// before has left. A round trip succeeds only if the record is the one that the take has
// read, or that the round trip before has written: nobody else has written in between. So
// all holds up to its version took effect, in their order, at the moment of the round trip:
// what a process reads afterwards contains them.
//
// # Why it is saved before it is answered
//
// No hold reports success before a round trip that was sent after its end has stored its version, or
// one that was built on it. That goes for holds that changed nothing, too: what they read may be a
// version that is not stored yet, and if it never is, it must not be seen.
//
// # When a round trip fails
//
// Then all versions that are not stored are void, and the error is that of every hold that made
// one or builds on one. The tenure is over; the next request in line takes the lock and reads the
// record anew. Where only the reply was lost, a version may be stored all the same.
//
// Where Redis has not answered at all, those who wait get the same error: they would find out the
// same, one after another, each after a timeout of its own.
//
// # Late commands
//
// A take that reaches Redis late, or again, may give the lock to its token a second time, after
// others had it. That blocks the session for a lease, or two if its commit comes late as well, and
// nothing else comes of it: such a commit finds its token, but not the record that it replaces.
// Records never come back, so a commit takes effect once, on what its holds have read, or never.
type tenure struct {
	store *Engine
	id    string
	keys  scripting.Keys // of all scripts: record, lock, queue; and the list, of a user's session
	terms Terms          // of the request that took the lock

	mu   sync.Mutex // guards all below; never held during a round trip
	idle sync.Cond  // sending became false

	// What Redis has.
	token   string       // in the lock; "" once it is freed
	base    string       // the name of the record
	lease   *lease.Lease // of the present hold; nil before the first
	heard   time.Time    // when Redis answered last
	asked   time.Time    // when it was asked that; see askedSince
	silence error        // of the last round trip, if Redis has not answered it
	args    [7]any       // of the commit that is under way
	mark    any          // of a user's session: as it was read, a string
	box     *box         // seals and opens the record
	others  bool         // other processes wait, as of heard
	since   time.Time    // the first of those that wait for the next round trip waits since then; zero: nobody does
	sending bool         // a round trip is under way
	leaving bool         // the next one, which somebody waits for, stores all and gives the lock away

	// The versions. Each hold that ends makes one, changed or not.
	ended   bool   // the newest version is a tombstone: nobody joins a session that has ended
	size    int32  // of the newest state's stored form; Redis takes 512 MB at most
	record  Record // the newest state
	read    error  // it cannot be used
	write   write  // what brings Redis up to date
	newest  int
	written int   // the newest version that changed the record
	stored  int   // the newest version that Redis has
	err     error // why there will be no more
}

// admit gives the session to the request that has got the lease l: as its first hold, or as
// one that follows another. An error comes with h.lease where the record cannot be used.
// again: the lock is of no use, and l must wait for it again.
func (t *tenure) admit(ctx context.Context, h *Hold, l *lease.Lease) (again bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h.joined = t.lease != nil
	t.lease = l
	switch {
	case ctx.Err() != nil && !h.joined:
		t.turnDown(l, context.Cause(ctx))
		return true, nil
	case !h.joined:
		err = t.read
	case t.err != nil: // what it was to build on is void
		return true, nil
	case ctx.Err() != nil || l.Validity() == 0:
		t.giveUp(l, time.Now())
		return true, nil
	case !t.askedSince(l.Began()):
		t.free(l)
		return true, nil
	case int(t.size) > h.terms.MaxBytes:
		err = fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, t.size)
	case h.terms.expired(&t.record, time.Now()):
		t.giveUp(l, time.Now())
		return false, fmt.Errorf("%s: %w", excerpt.Of(t.id), ErrNotFound)
	}
	h.tenure, h.lease, h.Record = t, l, t.record
	h.stamp, _, _ = strings.Cut(l.Token(), " ") // which names it; the rest says who it is
	return false, err
}

// end ends a hold with a version of its own, and returns when that is stored, or never will be.
func (t *tenure) end(ctx context.Context, h *Hold, w write) error {
	if h.over {
		return errGivenBack
	}
	h.over = true
	t.mu.Lock()
	defer t.mu.Unlock()
	next, held, _ := h.lease.Stop(t.others)
	defer h.lease.Leave()
	// What is under way stores what others have ended, and only then is it known which token
	// Redis has.
	if !held && t.settled() == nil {
		t.fail(h.lease.Why(), "")
	}
	if t.err != nil {
		return t.err
	}
	t.waitsSince(w.begun)
	if w.ttl < 0 && t.newest > t.stored {
		w.ttl = t.write.ttl // a version before it, which goes with it, may be a visitor's
	}
	t.newest++
	version := t.newest
	if !w.changed {
		t.write.ttl = w.ttl
	} else {
		t.record, t.size, t.write, t.read, t.ended = w.record, w.size, w, nil, w.ended
		t.written = version
	}
	if t.passOn(ctx, h.lease, next, w.begun) {
		t.flush(ctx, version)
	}
	if t.stored >= version {
		return nil
	}
	return cmp.Or(t.err, ErrLost)
}

// release ends a hold without a version. failed is the error of a round trip since begun, if there was
// one: if Redis has not answered that, nobody waits for another. If it fails, the lease ends by itself.
func (t *tenure) release(_ context.Context, h *Hold, begun time.Time, failed error) {
	h.over = true
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil && scripting.Unanswered(failed) {
		t.fail(failed, "")
	}
	if h.terms.Quiet && t.newest == t.stored { // the visitors before it have had their time
		t.terms.Quiet, t.write.ttl = true, min(t.write.ttl, -t.write.ttl)
	}
	t.giveUp(h.lease, begun)
}

// waitsSince notes since when a hold that ends waits for its round trip. It is called with mu held.
func (t *tenure) waitsSince(begun time.Time) {
	if t.since.IsZero() || begun.Before(t.since) {
		t.since = begun
	}
}

// giveUp ends a hold without a version, which waits since begun. It is called with mu held.
func (t *tenure) giveUp(l *lease.Lease, begun time.Time) {
	next, _, ended := l.Stop(t.others)
	defer l.Leave()
	if !ended {
		t.passOn(context.Background(), l, next, begun)
	}
}

// turnDown ends a tenure whose first hold does not begin. Its caller has left after it waited for one
// round trip, and must not wait for another. If the next in line can go on without a round trip, it does;
// if not, the lock is freed in the background. It is called with mu held.
func (t *tenure) turnDown(l *lease.Lease, why error) {
	next, _, _ := l.Stop(t.others)
	defer l.Leave()
	if t.usable() && t.goesOn(next) {
		if given := l.HandOver(next, t.others); given != nil {
			t.lease = given
			return
		}
	}
	t.err = cmp.Or(t.err, why)
	l.Sweep(t.token)
}

// free frees the lock where its hold cannot begin. l keeps its turn, so that nobody who came later
// is served before it. It is called with mu held.
func (t *tenure) free(l *lease.Lease) {
	if _, _, ended := l.Stop(t.others); !ended {
		t.passOn(context.Background(), l, lease.Next{}, time.Now())
	}
}

// How far a process goes on before it hears from Redis again: by versions that are not
// stored yet, which a failed commit would take with it, and by time, since others may
// have begun to wait.
const (
	maxAhead = 128
	maxAlone = 10 * time.Millisecond
)

// askedSince reports whether a request that came then may have the session without a round trip of its
// own. A user's session may be ended from elsewhere at any time, and who comes after that must not
// see it: so its record must have been found alive by a round trip that was sent since.
func (t *tenure) askedSince(began time.Time) bool {
	return len(t.keys) < userKeys || !t.asked.Before(began)
}

// usable reports whether another hold can have the session.
func (t *tenure) usable() bool { return !t.ended && t.read == nil && t.err == nil }

// goesOn reports whether next may have the session before the next round trip.
func (t *tenure) goesOn(next lease.Next) bool {
	return next.Fresh && t.newest-t.stored < maxAhead && time.Since(t.heard) < t.store.alone && t.askedSince(next.Began)
}

// passOn gives the session to the next request in line, where there is one. Either at once:
// then ahead is set, and the versions are still to be stored. Or with the round trip that stores
// them, which frees the lock where nobody is next. It is called with mu held.
//
// A hold that ends and the next one's beginning are one step: a commit in between would give
// the lock to the one that ends, for longer than the next may have it.
func (t *tenure) passOn(ctx context.Context, l *lease.Lease, next lease.Next, begun time.Time) (ahead bool) {
	if !t.usable() {
		next = lease.Next{}
	}
	if t.goesOn(next) {
		if given := l.HandOver(next, t.others); given != nil {
			t.lease = given
			return true
		}
		next = lease.Next{} // who was next has left
	}
	t.waitsSince(begun)
	since := t.since
	t.leaving = true
	err := t.settled()
	if t.leaving = false; err == nil {
		t.send(ctx, next.Token, next.Span)
	} else {
		t.idle.Broadcast() // those that left it to this one
	}
	if next.Token == "" || t.err != nil {
		return false
	}
	if given := l.Give(next, t.others); given != nil {
		t.lease = given
	} else {
		t.since = since
		t.send(ctx, "", 0) // who was next has left
	}
	return false
}

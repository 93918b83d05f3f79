package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// A tenure is the time in which one process has one session: from the exchange
// that takes the lock and reads the record to the one that frees it. In between
// its requests hold the session one after another, and build on what is in memory.
//
// # Pipeline and group commit
//
// When a hold ends, its version of the record becomes the newest, and the next
// request in line starts on it at once, while the version is still on its way to
// Redis. Only one exchange is under way at a time. What ends meanwhile goes into the
// next one together: the newest version contains them all. Whoever ended a hold
// waits until an exchange that was sent after that has succeeded. How far the
// requests may run ahead of Redis is bounded, by number and by time.
//
// # Why this is serialisable
//
// The holds of a tenure are one after another, each on the state that the one
// before has left. An exchange succeeds only if the record is the one that the take has
// read, or that the exchange before has written: nobody else has written in between. So
// all holds up to its version took effect, in their order, at the moment of the exchange:
// what a process reads afterwards contains them.
//
// # Why it is saved before it is answered
//
// No hold reports success before an exchange has stored its version or one that
// was built on it. That goes for holds that changed nothing, too: what they read may
// be a version that is not stored yet, and if it never is, it must not be seen.
//
// # When an exchange fails
//
// Then all versions that are not stored are void, and the error is that of every
// hold that made one or builds on one. The tenure is over; the next request in line
// takes the lock and reads the record anew. A version may be stored although its
// exchange failed, when only the reply was lost; that is so with any commit.
//
// Where Redis has not answered at all, those who wait get the same error. They would find
// out the same, one after another, each after a time-out of its own.
//
// # Late commands
//
// A command may reach Redis late, or again, since it is repeated on another connection when
// one breaks. A take that comes late may give the lock to its token a second time, after
// others had it. That blocks the session for a lease, or two if its commit comes late as
// well, and nothing else comes of it: a commit that comes late, too, finds its token, but not the record that it replaces.
// Records never come back, so a commit takes effect once, on what its holds have read, or
// never.
type tenure struct {
	locker.Relay // the lock beside the record; some of its methods are replaced
	store        *Store
	id           string
	keys         locker.Keys // of all scripts: record, lock, queue
	terms        Terms       // of whoever takes the lock

	raw []byte // what the take has found, before any hold begins

	mu   sync.Mutex // guards all below; never held during an exchange
	idle sync.Cond  // sending became false

	// What Redis has.
	token   string        // in the lock; "" before the take
	base    string        // the name of the record
	lease   *locker.Lease // of the present hold
	others  bool          // other processes wait, as of heard
	heard   time.Time     // when Redis answered last
	sending bool          // an exchange is under way
	silence error         // of the last exchange, if Redis has not answered it

	// The versions. Each hold that ends makes one, changed or not.
	record  Record // the newest state
	read    error  // it cannot be used
	size    int    // of its stored form
	write   write  // what brings Redis up to date; its stamp is that of the newest record
	newest  int
	written int   // the newest version that changed the record
	stored  int   // the newest version that Redis has
	err     error // why there will be no more
}

// stampOf returns the part of a token that names it; the rest tells who it is.
func stampOf(token string) string {
	stamp, _, _ := strings.Cut(token, " ")
	return stamp
}

// take implements fence: it begins a tenure, or a hold of one that another request
// has begun. One whose commit failed meanwhile has nothing to build on, so it takes
// the lock itself.
func (t *tenure) take(ctx context.Context, h *Hold) error {
	s := h.store
	t.Relay, t.store, t.id, t.keys, t.terms = s.spin, s, h.id, s.keys(h.id), h.terms
	t.idle.L = &t.mu
	lease, err := s.guard.Lock(ctx, t.keys[1].(string), t, s.lock(h.terms))
	for err == nil {
		joined := lease.Algorithm().(*tenure)
		h.fence, h.lease, h.stamp = joined, lease, stampOf(lease.Token())
		if joined == t {
			return t.begin(h)
		}
		over, unusable := joined.join(h)
		if !over {
			return unusable
		}
		h.lease, h.joined = nil, false
		lease, err = s.guard.LockAgain(lease, t)
	}
	return err
}

// begin is the first hold.
func (t *tenure) begin(h *Hold) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lease, t.token, t.heard = h.lease, h.lease.Token(), time.Now()
	if t.read == nil {
		t.size = len(t.raw)
		t.record, t.read = parseRecord(t.raw)
	}
	h.Record = t.record
	return t.read
}

// join is a hold that follows another. The rules that the scripts keep where the
// record is read are kept here. over tells that the tenure came to its end.
func (t *tenure) join(h *Hold) (over bool, err error) {
	t.mu.Lock()
	t.lease = h.lease
	h.Record, h.joined = t.record, true
	over, size := t.err != nil, t.size
	t.mu.Unlock()
	switch {
	case !over && size > h.terms.MaxBytes:
		return false, fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, size)
	case !over && !h.terms.expired(h.Record.Created, time.Now()):
		return false, nil
	}
	if !over {
		t.giveUp(context.Background(), h.lease)
		h.lease, h.joined = nil, false
	}
	return over, fmt.Errorf("%s: %w", t.id, ErrNotFound)
}

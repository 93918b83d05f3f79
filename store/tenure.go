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
// before has left. An exchange succeeds only if the lock holds the token that the
// one before has put there; so from the take up to that moment no other process
// had the lock, and none wrote. So all holds up to its version took effect, in
// their order, at the moment of the exchange: what a process reads afterwards
// contains them.
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
// # Late commands
//
// Each commit gives the lock from one token to another, and no token has it twice. So
// it takes effect once: a command that reaches Redis late, or again, finds another
// token and changes nothing.
type tenure struct {
	locker.Relay // the lock beside the record; some of its methods are replaced
	store        *Store
	id           string
	keys         locker.Keys // of all scripts: record, lock, queue
	terms        Terms       // of whoever takes the lock

	raw []byte // what the take has found, before any hold begins

	mu   sync.Mutex // guards all below; never held during an exchange
	idle sync.Cond  // sending became false

	// The lock.
	token   string        // which Redis has; "" before the take
	next    string        // which it may have, if the last exchange failed
	lease   *locker.Lease // of the present hold
	span    time.Duration // for which it gets the lock: the longest that any hold relies on
	others  bool          // other processes wait, as of heard
	heard   time.Time     // when Redis answered last
	sending bool          // an exchange is under way

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
	s, began := h.store, time.Now()
	t.Relay, t.store, t.id, t.keys, t.terms = s.spin, s, h.id, s.keys(h.id), h.terms
	t.idle.L = &t.mu
	for o := s.lock(h.terms); ; o.Wait = max(h.terms.LockWait-time.Since(began), locker.NoWait) {
		lease, err := s.guard.Lock(ctx, t.keys[1].(string), t, o)
		if err != nil {
			return err
		}
		joined := lease.Algorithm().(*tenure)
		h.fence, h.lease, h.stamp = joined, lease, stampOf(lease.Token())
		if joined == t {
			return t.begin(h)
		}
		over, err := joined.join(h)
		if !over {
			return err
		}
	}
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
	t.giveUp(context.Background(), h.lease)
	h.lease, h.joined = nil, false
	return over, fmt.Errorf("%s: %w", t.id, ErrNotFound)
}

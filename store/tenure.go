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
// waits until an exchange that was sent after that has succeeded.
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
// Each exchange gives the lock from one token to another, so it takes effect once.
// A command that reaches Redis late, or twice, finds another token and is refused.
type tenure struct {
	locker.Relay // the lock beside the record; some of its methods are replaced
	store        *Store
	id           string
	terms        Terms // of whoever takes the lock

	// What the take has found. Set before any hold begins.
	raw  []byte
	span time.Duration // for which the lock is taken at a time

	mu   sync.Mutex // guards all below; never held during an exchange
	idle sync.Cond  // sending became false

	// The lock.
	token   string        // which Redis has; "" before the take
	next    string        // which it may have, if the last exchange failed
	lease   *locker.Lease // of the present hold
	others  bool          // other processes wait
	sending bool          // an exchange is under way

	// The versions. Each hold that ends makes one, changed or not.
	record  Record // the newest state
	read    error  // it cannot be used
	size    int    // of its stored form
	write   write  // what brings Redis up to date
	newest  int
	written int   // the newest version that changed the record
	stored  int   // the newest version that Redis has
	err     error // why there will be no more
}

// keys are the keys of all scripts.
func (t *tenure) keys() []string {
	return []string{t.store.recordKey(t.id), t.store.lockKey(t.id), t.store.lockKey(t.id) + ".queue"}
}

// stampOf returns the part of a token that names it; the rest tells who it is.
func stampOf(token string) string {
	stamp, _, _ := strings.Cut(token, " ")
	return stamp
}

// take implements fence: it begins a tenure, or a hold of one that another request
// has begun.
func (t *tenure) take(ctx context.Context, h *Hold) error {
	s := h.store
	t.Relay, t.store, t.id, t.terms = s.spin, s, h.id, h.terms
	t.idle.L = &t.mu
	lease, err := s.guard.Lock(ctx, s.lockKey(h.id), t, s.lock(h.terms))
	if err != nil {
		return err
	}
	joined := lease.Algorithm().(*tenure)
	h.fence, h.lease, h.stamp = joined, lease, stampOf(lease.Token())
	if joined == t {
		return t.begin(h)
	}
	return joined.join(h)
}

// begin is the first hold.
func (t *tenure) begin(h *Hold) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lease, t.token = h.lease, h.lease.Token()
	if t.read == nil {
		t.size = len(t.raw)
		t.record, t.read = parseRecord(t.raw)
	}
	h.Record = t.record
	return t.read
}

// join is a hold that follows another. The rules that the scripts keep where the
// record is read are kept here.
func (t *tenure) join(h *Hold) error {
	t.mu.Lock()
	t.lease = h.lease
	h.Record, h.joined = t.record, true
	err, size := t.err, t.size
	t.mu.Unlock()
	switch {
	case err != nil:
	case h.terms.expired(h.Record.Created, time.Now()):
		err = ErrNotFound
	case size > h.terms.MaxBytes:
		return fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, size)
	default:
		return nil
	}
	t.release(context.Background(), h)
	h.lease = nil
	return err
}

// save implements fence.
func (t *tenure) save(ctx context.Context, h *Hold, record Record, w write) error {
	return t.end(ctx, h, func() {
		t.record, t.size, t.write, t.read = record, len(w.record), w, nil
		t.written = t.newest
	})
}

// bury implements fence. Nobody joins a session that has ended.
func (t *tenure) bury(ctx context.Context, h *Hold, w write) error {
	h.lease.EndTurn()
	return t.save(ctx, h, Record{}, w)
}

// touch implements fence. Whoever took the lock has read what was stored then, and
// nothing can be wrong with that afterwards. Others have read what is known to be
// stored, or current, only if the lock was held until now.
func (t *tenure) touch(ctx context.Context, h *Hold, ttl int64) error {
	err := t.end(ctx, h, func() { t.write.ttl = ttl })
	if isLost(err) && !h.joined {
		return nil
	}
	return err
}

// release implements fence.
func (t *tenure) release(ctx context.Context, h *Hold) {
	if !t.handOver(h) {
		_ = h.lease.Unlock(ctx) // if it fails, the lease ends by itself
	}
}

// end ends a hold with a version of its own, and returns when that is stored.
func (t *tenure) end(ctx context.Context, h *Hold, change func()) error {
	t.mu.Lock()
	if t.err != nil {
		t.mu.Unlock()
		return t.err // the lease has been given up
	}
	t.newest++
	version := t.newest
	change()
	t.mu.Unlock()
	if t.handOver(h) {
		return t.flush(ctx, version)
	}
	_ = h.lease.Unlock(ctx) // calls Pass or Release
	return t.outcome(version)
}

// handOver lets the next request in line hold the session, if there is one.
func (t *tenure) handOver(h *Hold) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read != nil { // nobody could use it
		h.lease.EndTurn()
	}
	next := h.lease.HandOver(t.others)
	if next == nil {
		return false
	}
	t.lease = next
	return true
}

// flush sends what there is, unless somebody else does, until a version is stored.
func (t *tenure) flush(ctx context.Context, version int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.stored < version && t.err == nil {
		if t.sending {
			t.idle.Wait()
		} else {
			t.send(ctx, t.lease.Token())
		}
	}
	return t.outcomeLocked(version)
}

func (t *tenure) outcome(version int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.outcomeLocked(version)
}

func (t *tenure) outcomeLocked(version int) error {
	switch {
	case t.stored >= version:
		return nil
	case t.err != nil:
		return t.err
	default:
		return ErrLost // the hold was given back before
	}
}

package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker"
)

// errReleased is that of a Hold that is used again.
var errReleased = fmt.Errorf("%w: it was given back before", ErrLost)

// tombstoneTime is how long an ended id is remembered: longer than requests
// that were on their way when it ended.
const tombstoneTime = time.Minute

// A Hold is a session whose lock is held. Exactly one of Save, Touch, Release,
// Destroy and Renew gives it back; each of their round trips with Redis is bounded
// by Options.Timeout, and does not end with ctx. It is used by one goroutine at a time.
type Hold struct {
	// Record is what was read under the lock. Its Own may be replaced: Save and Renew store that. So
	// may be its User and Device for a Renew, whose id has the user's tag.
	Record Record

	engine   *Engine
	id       string
	terms    Terms
	ticket   lease.Ticket[*Hold]
	tenure   *tenure // set by who grants it the session, before it runs
	first    bool    // it has acquired the lock; else it follows another hold of its tenure
	revision string  // of what it writes; "": it has none yet

	// Guarded by the tenure's mu.
	over   bool // it has ended
	onLost context.CancelCauseFunc
}

// A write is what a hold leaves in Redis.
type write struct {
	record  Record    // of a tombstone, the name and the time
	size    int32     // of its stored form; of a tombstone 0
	ttl     int64     // ms; negative: see quietly
	changed bool      // there is a record to be written
	ended   bool      // it is a tombstone
	begun   time.Time // when the hold began to end
}

// text returns the record's stored form, sealed if b seals. A tombstone never is.
func (w write) text(b *box) []byte {
	if w.ended {
		return formatTombstone(w.record.revision, w.record.Created)
	}
	return w.record.text(b)
}

// A visit is what is allocated for one: its Hold, and how its lock is acquired.
type visit struct {
	Hold
	taking taking
}

// Take waits for the session's lock and reads its record, in one round trip. Where there is no
// record, no lock is kept: the error wraps [ErrNotFound] or [ErrGone]. Else it wraps
// [ErrTimeout], [ErrTooManyWaiters], [ErrUnavailable], or the cause of ctx's end.
//
// A record that cannot be used comes as an error that wraps [ErrCorrupt] or [ErrTooLarge]
// together with a Hold, so that the caller may replace the record; the Hold must be given back. Where that
// does not know the User of a user's session, Save is an error, and Renew gives it an id without a tag.
func (s *Engine) Take(ctx context.Context, id string, t Terms) (*Hold, error) {
	terms, err := s.terms(t)
	v := new(visit)
	h, k := &v.Hold, &v.taking
	h.engine, h.id, h.terms = s, id, terms
	if err == nil {
		k.Spin, k.engine, k.id, k.keys, k.terms = lease.Spin{Runner: s.runner}, s, id, s.keys(id), &h.terms
		h.ticket = lease.Ticket[*Hold]{Who: h, Key: k.keys.At(1), Label: terms.Label, Options: s.lockingBy(&terms), Context: ctx}
		err = h.acquire(ctx, k)
	}
	if h.tenure == nil {
		return nil, fmt.Errorf("store: taking a session: %w", err) // which names the key
	}
	if err != nil {
		h.Record = Record{Created: time.Now(), Own: h.terms.Guest()}
		return h, failed("taking", id, err)
	}
	return h, nil
}

// acquire waits in line, and at its head for the lock. An error comes with a tenure if the record cannot be
// used.
func (h *Hold) acquire(ctx context.Context, k *taking) error {
	for {
		head, err := h.engine.lines.Enter(&h.ticket)
		if head && err == nil {
			var won lease.Won
			if won, err = h.ticket.Compete(k); err == nil {
				k.tenure.start(h, won)
			}
		}
		if err != nil {
			return err
		}
		again, err := h.tenure.admit(ctx, h)
		if !again {
			return err
		}
	}
}

// lockingBy returns how the lock is acquired by these terms.
func (s *Engine) lockingBy(t *Terms) *lease.Options {
	wait, hold := t.LockWait, cmp.Or(t.MaxHold, s.locking.MaxHold)
	waiters := cmp.Or(t.MaxWaiters, s.locking.MaxWaiters)
	if o := s.latest.Load(); o != nil && o.Wait == wait && o.MaxHold == hold && o.MaxWaiters == waiters {
		return o
	}
	o := s.locking
	o.Wait, o.MaxHold, o.MaxWaiters = wait, hold, waiters
	s.latest.Store(&o)
	return &o
}

// OnLost arranges for cancel to be called with an [ErrLost] that says why when the lock is
// lost, in a goroutine of its own, or at once if it is lost already. The last one counts.
func (h *Hold) OnLost(cancel context.CancelCauseFunc) {
	t := h.tenure
	t.mu.Lock()
	lost := t.over != nil && !h.over
	h.onLost = cancel
	why := t.over
	t.unlock()
	if lost {
		cancel(lease.Lost(why))
	}
}

// tell tells the holder that the lock is lost. It is called with the tenure's mu held.
func (h *Hold) tell(why error) {
	if h.onLost != nil {
		go lease.Tell(h.onLost, lease.Lost(why))
	}
}

// Save stores data and gives the session back. It keeps data, which must not be changed
// afterwards. The error wraps [ErrLost], [ErrTooLarge] or [ErrUnavailable]. If it wraps
// ErrUnavailable, the data may have been stored all the same, also where it wraps ErrLost: the
// reply to the commit was lost then, and its repetition was refused. With ErrTooLarge alone nothing
// was stored. With ErrLost alone nothing was stored by then; but if the network has made copies of
// both the take and the commit, and these arrive later, while nobody has the lock and before anybody
// has written, they store the data.
func (h *Hold) Save(ctx context.Context, data []byte) error {
	return h.save(ctx, Record{Data: data})
}

// SaveContent is Save for what is encoded when it is sent, if it is. It keeps c.
func (h *Hold) SaveContent(ctx context.Context, c Content) error {
	return h.save(ctx, Record{Content: c})
}

func (h *Hold) save(ctx context.Context, record Record) error {
	defer h.letGo(ctx)
	record.Created, record.Own, record.revision = h.Record.Created, h.Record.Own, h.newRevision()
	record.User, record.Device, record.epoch = h.Record.User, h.Record.Device, h.Record.epoch
	size := h.engine.sizeOf(record)
	err := h.terms.fits(size)
	if _, _, ofUser := cutTag(h.id); ofUser != (record.User != "") {
		err = errTag // nobody could read it
	}
	if err != nil {
		h.Release(ctx)
		return failed("saving", h.id, err)
	}
	begun := time.Now()
	w := write{begun: begun, changed: true, record: record, size: int32(size), ttl: h.terms.ttl(&record, begun)}
	return failed("saving", h.id, h.tenure.end(ctx, h, w))
}

// Destroy ends the session and gives it back. Its id is remembered as gone for a
// minute. Errors as with Save; or [ErrGone] alone, where it was ended by another and what was read
// was stored.
func (h *Hold) Destroy(ctx context.Context) error {
	err := h.bury(ctx, time.Now())
	// One that follows another hold may have read what was not stored: its answer must not show that.
	if errors.Is(err, lease.ErrEnded) && !errors.Is(err, ErrUnavailable) && h.first {
		err = ErrGone
	}
	return failed("destroying", h.id, err)
}

// Renew stores data under a new id, ends the old one, and gives it back. The two ids are in two
// slots, so these are two steps: the new record first, which no visitor has the id of until the
// second step has succeeded; a crash between them leaves it until it times out. Errors as with
// Save. If the reply to the second step is lost for good, the old id may be dead although Renew
// fails, and the session with it: ending one too many is the safe side. Of Record.Own the new id
// keeps Until; and Idle, if a user's record was replaced and User is "".
func (h *Hold) Renew(ctx context.Context, id string, data []byte) error {
	defer h.letGo(ctx)
	ctx, begun := context.WithoutCancel(ctx), time.Now() // like a commit: those who wait depend on its outcome
	if _, _, ofUser := cutTag(h.id); !ofUser || h.Record.User != "" {
		h.Record.Own = h.Record.Own.renewed()
	} // else its record was replaced, and it is a guest's
	record := h.Record
	record.Data, record.Content, record.revision, record.epoch = data, nil, h.engine.newRevision(id), ""
	err := h.engine.create(ctx, id, h.id, record, h.terms)
	ambiguous := scripting.Ambiguous(err)
	if err != nil {
		h.tenure.release(ctx, h, begun, err)
	} else {
		err = h.bury(ctx, begun)
	}
	if err != nil {
		h.engine.dropLater(id, record.revision, ambiguous)
	}
	return failed("renewing", h.id, err)
}

// bury leaves a tombstone. For begun see write.
func (h *Hold) bury(ctx context.Context, begun time.Time) error {
	tombstone := Record{Created: time.Now(), revision: h.newRevision()}
	return h.tenure.end(ctx, h, write{changed: true, record: tombstone, ended: true, begun: begun, ttl: tombstoneTime.Milliseconds()})
}

// Touch extends the idle timeout, unless Terms.Quiet says otherwise, and gives the session back.
// Nothing was to be written, so a lock that was lost is no error, unless what was read came from a
// request before this one and may not be what is stored: then it is [ErrLost]. Else the error can only be [ErrUnavailable].
func (h *Hold) Touch(ctx context.Context) error {
	begun := time.Now()
	err := h.tenure.end(ctx, h, write{begun: begun, ttl: h.terms.ttl(&h.Record, begun)})
	// The request that took the lock has read what was stored then, and nothing can be wrong
	// with that afterwards. Those that followed it have read what is known to be stored, or
	// current, only if the lock was held until now.
	if h.first && (errors.Is(err, ErrLost) || errors.Is(err, locker.ErrExpired)) {
		err = nil
	}
	return failed("touching", h.id, err)
}

// newRevision returns that of what the hold writes, which it does once.
func (h *Hold) newRevision() string {
	if h.revision == "" {
		h.revision = h.engine.newRevision(h.id)
	}
	return h.revision
}

// Release gives the session back and leaves it as it was, as after a panic.
func (h *Hold) Release(ctx context.Context) { h.tenure.release(ctx, h, time.Now(), nil) }

// letGo gives the session back where nothing else has: a Content has panicked, or the client has
// called runtime.Goexit.
func (h *Hold) letGo(ctx context.Context) {
	if !h.over {
		h.Release(ctx)
	}
}

// failed returns the error of an operation on a session, or nil.
func failed(doing, id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: %s %s: %w", doing, excerpt.Of(id), err)
}

package records

import (
	"context"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// # Saving without a lock
//
// What was read by Load may be saved without ever taking the lock. The fence is the same: the
// script that writes the record replaces exactly the one that was read, or does nothing. So what was
// read is still true at that moment, and reading and writing take effect together.
//
// The fence alone would be enough for that. But then a holder of the lock would find another record
// when it commits, and fail, and with it all the requests that have built on it. So the script does
// nothing either while somebody holds the session: a lock is never lost to one who has none. Nor
// while processes wait for it, to whom the next turn belongs.
//
// A refusal is for good, since a record never comes back, except where only the lock was in the
// way: then a copy of the command that the network has made may be done later, once the lock is
// free, if nobody has written. No client of ours sends a second one after a reply.

// SaveLoaded stores c in place of the record read, which Load has returned, if that is what is still
// stored, and nobody holds the session or waits for it: in one round trip, and without a lock.
// Otherwise the error wraps [ErrConflict], and nothing was changed: Take the session then, and look
// whether the record is [Record.Same]. If it wraps [ErrUnavailable], too, the content may have been
// stored all the same, as with [Hold.Save]. Other errors are ErrTooLarge and ErrUnavailable.
//
// It returns the record that is stored then, also with an error. The round trip does not end with
// ctx.
func (s *Engine) SaveLoaded(ctx context.Context, id string, read Record, c Content, t Terms) (Record, error) {
	t = t.withDefaults()
	record := Record{Content: c, Created: read.Created, Own: read.Own, User: read.User, Device: read.Device, epoch: read.epoch, revision: s.newRevision(id)}
	err := t.fits(s.sizeOf(record))
	if err == nil {
		err = s.saveLoaded(context.WithoutCancel(ctx), id, read, record, t)
	}
	return record, failed("saving", id, err)
}

func (s *Engine) saveLoaded(ctx context.Context, id string, read, record Record, t Terms) error {
	if err := s.usable(); err != nil {
		return err
	}
	if len(read.revision) != revisionLength { // which the script would not find
		return ErrConflict
	}
	keys := s.keys(id)
	x := scripting.RoundTrip{Script: optimisticScript, Keys: keys[:ownKeys]}
	text := stage(&x, record.revision, record.text(s.box(id)))
	x.Args = []any{read.revision, text, t.expiry(&record, time.Now())}
	ask(&x, keys)
	_, reply, err := s.runner.RoundTrip(ctx, x)
	if err != nil {
		return err
	}
	switch n, ok := reply.Int(); {
	case ok && n == replyDone:
		return nil
	case ok && n == replyLost:
		return ErrConflict
	case ok && n == replyLostAgain:
		return fmt.Errorf("%w; an earlier try may have been done, since its reply was lost: %w", ErrConflict, ErrUnavailable)
	}
	return lease.Unexpected(reply)
}

// Same reports whether r and other are one and the same record: nobody has written in between.
func (r Record) Same(other Record) bool { return r.revision != "" && r.revision == other.revision }

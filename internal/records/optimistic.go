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
// A session that Load has read may be saved without the lock. The fence is the same: the script replaces
// exactly the record that was read, or does nothing. So the record is still the one that was read, and
// reading and writing take effect at one moment.
//
// The fence alone would be enough for that. But then a holder of the lock would find another record when it
// commits. It would fail, and all requests that have built on its version would fail as well. So the script
// also does nothing while the session is locked: a request without the lock never makes the holder fail. Nor
// does it write while processes wait for the session: the next turn is theirs.
//
// A refusal is final, since a record never comes back. There is one exception: if only the lock was in the
// way, and the network has made a copy of the command, the copy may be done later, when the lock is free and
// no other write has come. Our clients never repeat a command after its reply.

// SaveLoaded replaces the record read, which Load has returned, by c, in one round trip and without a lock. It
// does so if read is still stored, and the session is neither locked nor waited for. Otherwise the error wraps
// [ErrConflict], and nothing has changed: Take the session then, and compare the record by [Record.Same]. If the
// error wraps [ErrUnavailable] as well, c may have been stored, as with [Hold.Save]. Other errors are
// ErrTooLarge and ErrUnavailable.
//
// The returned record is the one that SaveLoaded tried to store, even if there is an error. The round trip does
// not end with ctx.
func (s *Engine) SaveLoaded(ctx context.Context, id string, read Record, c Content, t Terms) (Record, error) {
	t = t.withDefaults()
	record := read
	record.Data, record.Content, record.revision = nil, c, s.newRevision(id)
	size := s.sizeOf(record)
	err := t.fits(size)
	if err == nil {
		err = s.saveLoaded(withoutCancel(ctx), id, read, record, t)
	}
	if err == nil {
		s.sized(ctx, size)
	}
	return record, failed("saving", id, err)
}

func (s *Engine) saveLoaded(ctx context.Context, id string, read, record Record, t Terms) error {
	if err := s.usable(); err != nil {
		return err
	}
	if len(read.revision) != revisionLength { // the script compares revisions of this length only
		return ErrConflict
	}
	keys := s.keys(id)
	x := scripting.RoundTrip{Script: optimisticScript, Keys: keys.forScript()}
	text := record.text(s.box(id))
	x.Args = []any{read.revision, text, t.expiry(&record, time.Now())}
	if len(text) >= stagedFrom {
		x.Args[1] = stage(&x, record.revision, text)
		x.Args = append(x.Args, yes)
	}
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

// Same reports whether r and other have the same revision: no request has written in between.
func (r Record) Same(other Record) bool { return r.revision != "" && r.revision == other.revision }

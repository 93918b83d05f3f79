package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

// Create stores the first record of a new ID, in one round trip and without a lock: no other request knows the
// ID yet. The error wraps [ErrTooLarge] or [ErrUnavailable].
func (s *Engine) Create(ctx context.Context, id string, data []byte, t Terms) error {
	return s.CreateRecord(ctx, id, Record{Data: data, Created: time.Now(), Own: t.Guest()}, t)
}

// CreateRecord is like Create, but takes Created and Own from r and ignores t.GuestTTL. If creating a user's
// session fails with ErrUnavailable, what may have been stored is removed in the background.
func (s *Engine) CreateRecord(ctx context.Context, id string, r Record, t Terms) error {
	r.revision = s.newRevision(id)
	err := s.create(ctx, id, "", r, t.withDefaults())
	if r.User != "" && errors.Is(err, ErrUnavailable) {
		s.dropLater(id, r.revision, scripting.MaybeDone(err))
	}
	return failed("creating", id, err)
}

// dropLater removes, in the background, the record that a failed create may have stored. No visitor has the
// ID. The record would expire by itself, but until then the user's list would show it, and MaxSessions would
// count it.
func (s *Engine) dropLater(id, revision string, ambiguous bool) {
	lasting := s.locking
	lasting.Lease = max(lasting.Lease, 2*s.within()) // until then Redis may execute a copy of the login: see clock.go
	s.lines.Sweeper.Sweep(&lasting, ambiguous, func(ctx context.Context) bool {
		keys := s.recordKeys(id)
		_, err := s.runner.Run(ctx, dropScript, keys.withList(), revision)
		return err == nil
	})
}

var errTaken = fmt.Errorf("%w: the new ID exists already", ErrCorrupt)

// create stores the first record of a new ID. old is the ID of the session that it replaces, or "".
func (s *Engine) create(ctx context.Context, id, old string, record Record, t Terms) (err error) {
	if err := s.usable(); err != nil {
		return err
	}
	record.Device = shortened(record.Device)
	size := s.sizeOf(record)
	defer func() {
		if err == nil {
			s.sized(ctx, size)
		}
	}()
	if err := t.fits(size); err != nil {
		return err
	}
	keys, now := s.recordKeys(id), time.Now()
	if keys.ofUser() != (record.User != "") {
		return errTag
	}
	ttl := t.expiry(&record, now)
	x := scripting.RoundTrip{Script: createScript, Keys: keys.withList(), Args: []any{record.revision, record.text(s.box(id)), ttl}}
	// A record that has expired leaves no trace for a late copy of the command. For the half see maxWithin.
	within := min(s.within(), time.Duration(ttl)*time.Millisecond/2)
	if record.User != "" {
		login := loginIn(ctx)
		s.prepareLogin(&x, keys, old, login.instead(s, keys), &record, t, now)
		return s.runLogin(ctx, x, id, within, cmp.Or(login.Arrived, now), login)
	}
	reply, err := s.inTime(ctx, x, within)
	if err != nil {
		return err
	}
	if n, ok := reply.Int(); !ok || n != 1 {
		return errTaken
	}
	return nil
}

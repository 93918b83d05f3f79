package middleware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/values"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// An opening takes a request to its open session, with request.mu held:
//
//	choose   tries the IDs of the request's cookies, nearly always one
//	acquire  locks the session with an ID and reads its record, or only reads it
//	decode   makes the record a session
type opening struct {
	rq   *request
	ctx  context.Context // of the caller that waits for the session
	lock bool            // the session must be locked, even if the mode does not ask for a lock

	claims bool // claim follows acquire
	dead   int  // cookies whose sessions have ended or expired

	gaveWay []string // the sessions that have ended because their user has come back with a newer login
}

// open opens the session of one of the request's cookies, or a new session. r is the handler's request, whose
// body open reads before it locks a session; r is nil for session.Start, since the handler has it already.
func (rq *request) open(ctx context.Context, r *http.Request) (*session.Session, error) {
	var few [2]cameID // spares an allocation: there are rarely more IDs
	ids := few[:0]
	if rq.second != nil && rq.second.hold != nil {
		ids = append(ids, rq.second.id)
	} else {
		unknown, refused := 0, 0
		ids, unknown, refused = rq.readIDs(ids)
		rq.seen.cameWith(unknown, refused)
		rq.lookAtCookies(ids, unknown)
	}
	if r != nil && len(ids) > 0 && rq.mode != ReadOnly {
		r.Body = readAhead(rq.base, rq.sessions.options.Buffer)
	}
	rq.mu.Lock()
	defer func() {
		if rq.session == nil { // it failed, or OnCorrupt has panicked
			rq.releaseLock()
		}
		rq.mu.Unlock()
	}()
	if rq.committed {
		rq.logFailure(errBegun)
		return nil, errBegun
	}
	if method := rq.base.Method; rq.mode == Optimistic && !slices.Contains(safeMethods, method) {
		return nil, fmt.Errorf("%w: this is a %.16s", errUnsafe, method)
	}
	o := opening{rq: rq, ctx: ctx}
	opened, err := o.decode(o.choose(ids))
	if err != nil && r != nil {
		err = whyCanceled(err, r.Body)
	}
	if err != nil && rq.mode == Lazy { // logged here, since the handler makes the response
		rq.startFailed = true
		rq.logFailure(err)
	}
	rq.session = opened
	if err == nil {
		rq.seen.opened(rq.origin)
		for _, old := range o.gaveWay {
			rq.addEvent(endOf(old, "gave_way"))
		}
		rq.watch()
	}
	return opened, err
}

// readIDs appends the IDs of the request's cookies, or of its token.
func (rq *request) readIDs(ids []cameID) (_ []cameID, unknown, refused int) {
	rq.mu.Lock() // for Options.Token: see copyBack
	defer rq.mu.Unlock()
	return rq.sessions.cookies.readIDs(rq.base, ids)
}

// choose returns the record of the first ID that has one, or an empty record if none has.
func (o *opening) choose(ids []cameID) (record records.Record, err error) {
	rq, s := o.rq, o.rq.sessions
	o.claims = true
	for i, came := range ids {
		rq.came[came.role] = true
		others := ids[i+1:]
		if len(others) > 0 && s.dead.known(came.id) {
			o.foundDead()
			continue
		}
		record, err = o.acquire(came.id)
		if err == nil && record.Unclaimed() {
			err = o.claim(came.id, record)
		}
		moved, hasMoved := errors.AsType[*records.Moved](err)
		switch {
		case hasMoved && rq.moved(came.role).id == "":
			rq.changes().moved[came.role] = movedID{came.id, moved.To}
		case hasMoved:
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrGone):
			o.foundDead()
			if len(others) > 0 {
				s.dead.add(came.id)
			}
		default:
			rq.identity.setID(came.id)
			rq.role = came.role
			for _, other := range others {
				rq.came[other.role] = true
			}
			if err == nil {
				o.reportOthers(came.role, others)
			}
			return record, err
		}
	}
	// Never adopt an ID that an attacker may have chosen: if a session is created, it gets a new ID. In mode Lazy
	// an earlier try may have found the session, so its ID is removed.
	rq.identity.setID("")
	rq.origin, rq.role = none, guest
	return records.Record{}, nil
}

func (o *opening) foundDead() {
	o.dead++
	o.rq.seen.foundDead(o.dead)
}

// claim notes that the client of a login has come back with its session. Older sessions that the login has replaced
// end now: see package records.
func (o *opening) claim(id string, record records.Record) error {
	rq, begun := o.rq, time.Now()
	ended, err := rq.sessions.store.Claim(o.ctx, id, record)
	o.gaveWay = append(o.gaveWay, ended...)
	if hold := rq.hold; hold != nil && err == nil {
		hold.Claimed()
		rq.endIfLost() // not before, since the request goes on without a session that ends during the claim
	} else if hold != nil {
		rq.hold = nil
		silent := err
		if end, ok := o.ctx.Deadline(); ok && !time.Now().Before(end) || o.ctx.Err() != nil {
			silent = nil // Redis had only the rest of the request's time, which says nothing to the next in line
		}
		hold.GiveUp(o.ctx, begun, silent)
		rq.seen.released()
	}
	if errors.Is(err, store.ErrGone) { // a newer login was claimed at the same moment, or another request has moved the ID
		rq.first = nil
		err = o.whyGone(id)
	}
	return err
}

// whyGone returns the error of an ID whose session has ended: only a read says whether the ID has moved.
func (o *opening) whyGone(id string) error {
	_, err := o.rq.sessions.look(o.ctx, id)
	return cmp.Or(err, store.ErrGone)
}

// take calls Engine.Take, and notes the wait in seen. The wait was over at now. If the record cannot be used, take
// returns a hold together with the error.
func (s *Sessions) take(ctx context.Context, id string, t records.Terms, seen *observation) (_ *records.Hold, now time.Time, _ error) {
	began, region := time.Now(), seen.wait(id)
	hold, found, err := s.store.Take(ctx, id, t)
	now = time.Now()
	region.end()
	inVain := err
	if hold != nil {
		inVain = nil
	}
	seen.waited(t.Label, now.Sub(began), found, inVain, now)
	return hold, now, err
}

// acquire waits for a session's lock and reads its record. If the mode needs no lock, acquire only reads the
// record. An ID without a record leaves no lock.
func (o *opening) acquire(id string) (record records.Record, err error) {
	rq, s := o.rq, o.rq.sessions
	terms := s.terms
	terms.Quiet = rq.passive
	switch second := rq.second; {
	case o.lock: // Take, below
	case rq.mode == ReadOnly:
		rq.origin = readOnly
		return s.store.Load(o.ctx, id, terms)
	case second != nil && second.hold != nil: // the first run has acquired the lock
		rq.origin = locked
		rq.holds.Store(time.Now().UnixNano())
		rq.endIfLost()
		rq.seen.holdsOn()
		return rq.hold.Record, second.err
	case second != nil && second.id.id == id: // the first run has found that the session has ended
		return records.Record{}, second.err
	case rq.mode == Optimistic:
		if record, done, err := o.readUnlocked(id); done {
			return record, err
		}
	}
	rq.origin = locked
	// In mode Lazy a handler may try again, for as long as time is left, but at least once.
	terms.LockWait = max(terms.LockWait-rq.waited, time.Nanosecond)
	terms.Label = rq.label()
	began := time.Now()
	rq.holds.Store(waitsForLock)
	hold, now, err := s.take(o.ctx, id, terms, rq.seen)
	rq.hold = hold
	rq.waited += now.Sub(began)
	rq.holds.Store(0)
	if hold != nil {
		rq.holds.Store(now.UnixNano())
		record = rq.hold.Record
		if !o.claims || !record.Unclaimed() {
			rq.endIfLost()
		}
	}
	return record, err
}

// decode returns the session with the content of record: a new session, or the session that is reopened. err is
// the error of reading the record.
func (o *opening) decode(record records.Record, err error) (*session.Session, error) {
	if err != nil {
		return o.replaceCorrupt(err)
	}
	rq := o.rq
	opened, err := rq.sessions.sessionOf(record, rq, rq.mode == ReadOnly, rq.session)
	if err != nil {
		return o.replaceCorrupt(err)
	}
	rq.identity.setStored(record.Created, record.Own)
	return opened, nil
}

// replaceCorrupt returns an empty session in place of a session whose record cannot be used, if OnCorrupt
// allows that. Otherwise it returns err, or the error of OnCorrupt.
func (o *opening) replaceCorrupt(err error) (*session.Session, error) {
	rq, corrupt := o.rq, errors.Is(err, store.ErrCorrupt)
	if corrupt && rq.origin == optimistic { // only a record that is locked may be replaced
		rq.first, o.lock = nil, true
		return o.decode(o.choose([]cameID{{rq.identity.knownID(), rq.role}}))
	}
	rq.lookAtError(err)
	ask := rq.sessions.options.OnCorrupt
	if ask == nil || !corrupt && !errors.Is(err, store.ErrTooLarge) {
		return nil, endedWith(o.ctx, err)
	}
	if verdict := ask(rq.base, err); verdict != nil {
		return nil, endedWith(o.ctx, verdict)
	}
	rq.log(slog.LevelError, "replaced", "session replaced by an empty one", slog.Any("error", err))
	if rq.hold != nil { // the empty session begins now, and has no user
		rq.hold.Record = records.Record{Created: time.Now(), Own: rq.sessions.terms.Guest()}
	}
	return o.decode(records.Record{}, nil)
}

// endedWith returns err. If ctx has ended, and err is not ctx.Err() but a cause that the application has given,
// the result also wraps ctx.Err().
func endedWith(ctx context.Context, err error) error {
	if ended := ctx.Err(); err != nil && ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

// sessionOf returns the session with the content of record: closed, opened again, or if closed is nil, a new
// session.
func (s *Sessions) sessionOf(record records.Record, k keep.Keeper, readOnly bool, closed *session.Session) (*session.Session, error) {
	config := keep.Config{Keeper: k, ReadOnly: readOnly, User: record.User}
	if record.User != "" {
		config.LoginTime = record.Created
	}
	if snapshot, ours := record.Content.(*values.Snapshot); ours {
		config.Snapshot = snapshot
	} else { // the record was read from Redis, or saved by another package
		config.Data = record.Encoded()
	}
	config.Remembered = record.Own != nil && !record.Own.Until.IsZero()
	config.MaxBytes, config.TooLarge = cmp.Or(s.terms.MaxBytes, records.DefaultMaxBytes), store.ErrTooLarge
	opened := closed
	if opened == nil {
		opened = new(session.Session)
	}
	if err := keep.Open(opened, config); err != nil {
		return nil, fmt.Errorf("middleware: session %s: %w: %w", k.SessionID(), store.ErrCorrupt, err)
	}
	return opened, nil
}

// reportOthers writes a log line if another of the request's cookies of the same role opens a session, too. Either the
// application has moved its cookie to another path or domain, or an attacker has planted a cookie: see
// SECURITY.md. This costs a round trip for each cookie that is not known to be dead, but only one if Redis is
// unavailable.
func (o *opening) reportOthers(of role, others []cameID) {
	s := o.rq.sessions
	for _, other := range others {
		if other.role != of || s.dead.known(other.id) {
			continue
		}
		_, err := s.look(o.ctx, other.id)
		_, moved := errors.AsType[*records.Moved](err)
		switch {
		case moved: // it counts if the first cookie dies
		case err == nil:
			o.rq.log(slog.LevelWarn, "two_cookies", "request with the cookies of two sessions; the first one is used",
				slog.String("other", other.id))
			return
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrGone):
			s.dead.add(other.id)
		case errors.Is(err, store.ErrUnavailable):
			return
		}
	}
}

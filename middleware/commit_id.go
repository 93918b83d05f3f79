package middleware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/secret"
	"github.com/a2139e8d/latchkey/store"
)

// changeID begins or ends an ID, and so changes the cookies; or it refuses to.
func (c *commit) changeID(ctx context.Context) (err error) {
	rq, s := c.rq, c.rq.sessions
	if c.by != handlerEnd { // otherwise the handler's context has ended, and the request is about to leave the watch
		entered := rq.stepOut() != ""
		defer func() {
			if err == nil {
				rq.watch()
			}
			if entered {
				rq.stepIn(err == nil && !rq.origin.isStored())
			}
		}()
	}
	if c.do == renew && c.outlived() {
		c.do = destroy
	}
	switch c.do {
	case create:
		rq.releaseLock() // of a session that this request has ended. The request has stepped out: nobody takes it for lost
		return c.beginID(ctx)
	case renew:
		return c.beginID(ctx)
	case refuse:
		if s.cookies.token != nil {
			return errNoAccess
		}
		moved := cmp.Or(rq.moved(member).id, rq.moved(guest).id)
		return fmt.Errorf("middleware: saving %s: %w", moved, store.ErrMoved)
	}
	return c.logOut(ctx)
}

// outlived reports whether Remember(0) has found that the session is older than Lifetime. A login begins anew.
func (c *commit) outlived() bool {
	if !c.change.Remembered || c.change.User != "" {
		return false
	}
	now := time.Now()
	return !c.rq.sessions.terms.Expires(c.beginRecord(), now).After(now)
}

// logOut ends the session, if there is one, and deletes the cookies that came: also a guest's, whose content should
// not appear on a shared computer after the logout.
func (c *commit) logOut(ctx context.Context) error {
	rq, s := c.rq, c.rq.sessions
	if err := c.endSuccessor(ctx, rq.moved(member).to, "", "destroy"); err != nil {
		return err
	}
	if hold := rq.hold; hold != nil {
		rq.hold = nil
		err := hold.Destroy(ctx)
		if err != nil && (!errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrLost)) { // else it had ended, for example by EndAll
			return err
		}
		if err == nil {
			rq.addEvent(endOf(rq.identity.knownID(), "destroy"))
		}
		rq.saved = true
	}
	for of := range roles {
		if rq.came[of] || rq.cookie(of) != nil {
			rq.changes().cookies[of] = s.cookies.deletion(of)
		}
	}
	rq.markEnded()
	return nil
}

// beginID begins the ID of a new session, or a new ID of the session that is held, as after Login.
func (c *commit) beginID(ctx context.Context) error {
	rq, user := c.rq, c.change.User
	if err := c.mayBeginID(); err != nil {
		return err
	}
	record := c.beginRecord()
	key := c.newKey(record.User)
	moved, err := c.successors(ctx)
	if err != nil {
		return err
	}
	var login *records.Login
	if user != "" {
		login = &records.Login{Arrived: rq.identity.loginArrived(user), Instead: c.takeOver(moved)}
		ctx = records.WithLogin(ctx, login)
	}
	id, of := key.publicID(), c.newRole(key)
	cookie, err := rq.sessions.cookies.issue(of, key.raw(), record.Own)
	if err != nil {
		return err
	}
	err = c.storeNew(ctx, id, record)
	if login != nil {
		for _, old := range login.Surplus { // also if the login has failed
			rq.addEvent(endOf(old, "max_sessions"))
		}
	}
	if err != nil {
		return err
	}
	rq.addEvent(idEvent{do: c.do, old: rq.identity.knownID(), id: id, how: c.howBegun()})
	// A login that is refused ends nothing. If this fails, nobody gets the cookie of the new session, which gives way.
	// Since successors has looked, the session may have moved on, to one of the same user.
	if err := c.endSuccessor(ctx, c.ofAnotherUser(moved), user, "other_user"); err != nil {
		return err
	}
	rq.identity.setID(id)
	rq.identity.setStored(record.Created, record.Own)
	rq.setCookie(of, cookie)
	rq.origin, rq.saved = locked, true
	return nil
}

// mayBeginID returns why the client could not get a new ID, or nil.
func (c *commit) mayBeginID() error {
	switch byToken := c.rq.sessions.cookies.token != nil; {
	case byToken && c.by == handlerEnd && c.do == create && !c.change.Renewed:
		return fmt.Errorf("%w: %w", errNoAccess, errNobody) // a mistake of the client, or of the handler
	case byToken && c.by == handlerEnd:
		return errNobody
	case !byToken && c.rq.begun:
		return errCookieLate
	}
	return nil
}

// storeNew stores a record with a new ID.
func (c *commit) storeNew(ctx context.Context, id string, record records.Record) error {
	rq := c.rq
	if c.do != renew {
		record.Data = c.change.Data()
		return rq.sessions.store.CreateRecord(ctx, id, record, rq.sessions.terms)
	}
	hold := rq.hold
	rq.hold, hold.Record = nil, record
	return hold.Renew(ctx, id, c.change.Data())
}

// newRole returns the role of the session whose ID begins.
func (c *commit) newRole(key cookieKey) role {
	switch {
	case c.rq.sessions.cookies.token != nil:
		return roleOf(key.publicID())
	case c.change.Renewed:
		return member
	}
	return guest
}

// howBegun says for observers how a session has got its new ID.
func (c *commit) howBegun() string {
	switch {
	case c.change.User != "":
		return "login"
	case c.do == renew:
		return "renew"
	}
	return ""
}

// newKey returns the key of an ID that begins, of a session of a user or, if that is "", of nobody.
func (c *commit) newKey(user string) (key cookieKey) {
	rq := c.rq
	if c.do == create && !rq.origin.isStored() { // the secret of a stored session is in its cookie alone
		_ = rq.SessionID()              // makes the secret, unless the handler has asked for the ID before
		key.secret = rq.identity.secret // does not change any more
	} else {
		key.secret = secret.New()
	}
	if user != "" {
		tag := rq.sessions.store.Tag(user)
		key.tag = tag[:]
	}
	return key
}

// beginRecord returns the first record of an ID, without its data. A login is a new beginning: nobody inherits the
// age of the session before, or the end that Remember has set for another user.
func (c *commit) beginRecord() records.Record {
	s, change := c.rq.sessions, c.change
	record := records.Record{Created: time.Now(), Own: s.terms.Guest()}
	if c.do == renew {
		record = c.rq.hold.Record
	}
	if change.User != "" {
		record.User, record.Device = change.User, s.device(c.rq.base)
		record.Created, record.Own = change.LoginTime, nil
	}
	record.Own = ownTimeouts(record.Own, change)
	return record
}

// setCookie makes the response set the cookie of a session that has begun. A guest who has become a member does not
// need the guest's cookie any more. It is deleted even if it did not come with this request.
func (rq *request) setCookie(of role, cookie *http.Cookie) {
	c := &rq.sessions.cookies
	if of == member && c.token == nil {
		rq.changes().cookies[guest] = c.deletion(guest)
	}
	rq.role, rq.changes().cookies[of] = of, cookie
	rq.lookAtTransport()
}

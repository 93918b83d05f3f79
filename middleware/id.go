package middleware

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/secret"
	"github.com/a2139e8d/latchkey/store"
)

// # The id of a session
//
// A session's public id is derived from the secret in its cookie. After session.Login the id has two
// parts, of which the first is a tag that stands for the user; see internal/records/user.go. The cookie
// then has the 12 bytes of the tag and the secret, under one signature.

// A cookieKey is the part of a cookie that opens a session.
type cookieKey struct {
	tag    []byte // of the user; empty if no user is logged in
	secret secret.Secret
}

// The sizes in bytes.
const (
	tagSize    = 12
	secretSize = 32
)

// raw returns the bytes that a cookie signs.
func (k cookieKey) raw() []byte { return append(slices.Clip(k.tag), k.secret.Bytes()...) }

// publicID returns the public id: without a tag, the secret's id; with a tag, the tag and the first half of the
// secret's id, which is 66 bits. If a user has a million sessions, two have the same id with a probability of
// 10^-8, and a new session never takes the place of another. SECURITY.md says what an attacker with a signing
// key could do.
func (k cookieKey) publicID() string { return tagged(k.tag, k.secret.ID()) }

func tagged(tag []byte, id string) string {
	if len(tag) == 0 {
		return id
	}
	text := make([]byte, 0, 28)
	text = base64.RawURLEncoding.AppendEncode(text, tag)
	text = append(text, '.')
	return string(append(text, id[:len(id)/2]...))
}

// idOfRaw returns the public id for the bytes that a cookie has signed, or "".
func idOfRaw(raw []byte) string {
	var tag []byte
	if len(raw) == tagSize+secretSize {
		tag, raw = raw[:tagSize], raw[tagSize:]
	}
	id, err := secret.IDOf(raw)
	if err != nil {
		return ""
	}
	return tagged(tag, id)
}

// isID reports whether id can be a session's public id: 16 bytes in base64url; or a user's tag, a dot, and
// the first half of 16 bytes in base64url.
func isID(id string) bool {
	tag, own, ofUser := strings.Cut(id, ".")
	if ofUser {
		return isBase64(tag, tagSize) && isBase64(own+"AAAAAAAAAAA", 16)
	}
	return isBase64(id, 16)
}

// isOfUser reports whether a public id has a user's tag.
func isOfUser(id string) bool { return strings.Contains(id, ".") }

// isBase64 reports whether s is the base64url of size bytes, in the form in which we write it.
func isBase64(s string, size int) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(b) == size && len(s) == base64.RawURLEncoding.EncodedLen(size) // no line breaks
}

// changeID begins or ends an id, and so changes the cookies; or it refuses to.
func (c *commit) changeID(ctx context.Context) (err error) {
	rq, s := c.rq, c.rq.sessions
	if c.by != handlerEnd { // otherwise the handler's context has ended, and the request is about to leave the watch
		rq.stepOut()
		defer func() {
			if err == nil {
				rq.watch()
			} else {
				rq.stepIn()
			}
		}()
	}
	if c.do == renew && c.outlived() {
		c.do = destroy
	}
	switch c.do {
	case create, renew:
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

// beginID begins the id of a new session, or a new id of the session that is held, as after Login.
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
	err = c.storeNew(ctx, id, &record)
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

// mayBeginID returns why the client could not get a new id, or nil.
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

// storeNew stores a record with a new id. If the id is that of a session that goes on, this changes the record's Own.
func (c *commit) storeNew(ctx context.Context, id string, record *records.Record) error {
	rq := c.rq
	if c.do != renew {
		record.Data = c.change.Data()
		return rq.sessions.store.CreateRecord(ctx, id, *record, rq.sessions.terms)
	}
	hold := rq.hold
	rq.hold, hold.Record = nil, *record
	err := hold.Renew(ctx, id, c.change.Data())
	record.Own = hold.Record.Own // a new id does not keep all of them
	return err
}

// newRole returns the role of the session whose id begins.
func (c *commit) newRole(key cookieKey) role {
	switch {
	case c.rq.sessions.cookies.token != nil:
		return roleOf(key.publicID())
	case c.change.Renewed:
		return member
	}
	return guest
}

// howBegun says for observers how a session has got its new id.
func (c *commit) howBegun() string {
	switch {
	case c.change.User != "":
		return "login"
	case c.do == renew:
		return "renew"
	}
	return ""
}

// newKey returns the key of an id that begins, of a session of a user or, if that is "", of nobody.
func (c *commit) newKey(user string) (key cookieKey) {
	rq := c.rq
	if c.do == create {
		_ = rq.SessionID()              // makes the secret, unless the handler has asked for the id before
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

// beginRecord returns the first record of an id, without its data. A login is a new beginning: nobody inherits the
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

// setCookie makes the response set the cookie of a session that has begun. The guest that has become a member has
// no use for the guest's cookie any more, also if it did not come with this request.
func (rq *request) setCookie(of role, cookie *http.Cookie) {
	c := &rq.sessions.cookies
	if of == member && c.token == nil {
		rq.changes().cookies[guest] = c.deletion(guest)
	}
	rq.role, rq.changes().cookies[of] = of, cookie
	rq.lookAtTransport()
}

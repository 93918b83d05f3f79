package middleware

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
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

// A cookieKey is what a cookie opens a session with.
type cookieKey struct {
	tag    []byte // of the user; none for a session that nobody has logged in to
	secret secret.Secret
}

// The sizes in bytes.
const (
	tagSize    = 12
	secretSize = 32
)

// raw returns what a cookie signs.
func (k cookieKey) raw() []byte { return append(slices.Clip(k.tag), k.secret.Bytes()...) }

// publicID returns the public id: that of the secret; or if there is a tag, the tag and the first half of the
// secret's id, which is 66 bits. Of a user's million sessions two would have the same id with a probability
// of 10^-8, and a new session never takes the place of another. What this means for those who have a
// signing key is in SECURITY.md.
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

// idOfRaw returns the public id for what a cookie has signed, or "".
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

// isBase64 reports whether s is the base64url of some bytes, in the one form that we write.
func isBase64(s string, size int) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(b) == size && len(s) == base64.RawURLEncoding.EncodedLen(size) // no line breaks
}

// changeID begins or ends an id, and so changes the cookie.
func (c *commit) changeID(ctx context.Context, do action) (err error) {
	rq, s, hold := c.rq, c.rq.sessions, c.rq.hold
	switch do {
	case create, anew, renew:
		return c.beginID(ctx, do)
	case refuse:
		err = fmt.Errorf("middleware: session %s: %w", rq.SessionID(), store.ErrGone)
		if s.cookies.token != nil {
			err = fmt.Errorf("%w: %w", errNoAccess, err)
		}
		return err
	case destroy:
		rq.hold, err = nil, hold.Destroy(ctx)
		if errors.Is(err, store.ErrGone) { // ended by EndAll, say: that is what was wanted
			do, err = leave, nil
		}
	}
	if err == nil {
		rq.cookie, rq.saved = s.cookies.deletion(), true
		rq.markEnded()
		c.done = event{do: do, old: rq.identity.knownID()}
	}
	return err
}

// beginID begins the id of a new session, or a new id of the one that is held: Login's, too.
func (c *commit) beginID(ctx context.Context, do action) error {
	rq, s, change := c.rq, c.rq.sessions, c.change
	switch byToken := s.cookies.token != nil; {
	case byToken && c.by == handlerEnd && do == create && !change.Renewed:
		return fmt.Errorf("%w: %w", errNoAccess, errNobody) // which is a mistake of the client, or of the handler
	case byToken && c.by == handlerEnd:
		return errNobody
	case !byToken && rq.begun:
		return errCookieLate
	}
	var key cookieKey
	if do == create {
		_ = rq.SessionID()              // which the handler may know already
		key.secret = rq.identity.secret // which stays the same from then on
	} else {
		key.secret = secret.New()
	}
	record := records.Record{Created: time.Now(), Own: s.terms.Guest()}
	if do == renew {
		record = rq.hold.Record
	}
	if change.User != "" {
		record.User, record.Device = change.User, s.device(rq.base)
		ctx = records.WithArrival(ctx, rq.identity.arrival())
	}
	if record.User != "" {
		tag := s.store.Tag(record.User)
		key.tag = tag[:]
	}
	id := key.publicID()
	record.Own = ownTimeouts(record.Own, change.Renewed, change.Remembered, change.Remember)
	s.beginAnew(&record, change.User != "")
	cookie, err := s.cookies.issue(key.raw(), record.Own)
	switch {
	case err != nil:
	case do == renew:
		hold := rq.hold
		rq.hold, hold.Record = nil, record
		err = hold.Renew(ctx, id, change.Data())
		record.Own = hold.Record.Own // of which the new id does not keep all
	default:
		record.Data = change.Data()
		err = s.store.CreateRecord(ctx, id, record, s.terms)
	}
	if err == nil {
		c.done = event{do, rq.identity.knownID(), id}
		rq.identity.setID(id)
		rq.identity.setStored(record.Created, record.Own)
		rq.cookie, rq.origin, rq.saved = cookie, locked, true
	}
	return err
}

package middleware

import (
	"context"
	"encoding/base64"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/secret"
)

// # The sessions of a user
//
// After session.Login the session has an id of two parts, of which the first stands for the user; see
// package store. The cookie has both: 12 bytes of a tag, and the secret, under one signature.

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

// id returns the public id: that of the secret, or where there is a tag, that and the first half of it,
// 66 bits. That is for luck: of a user's million sessions two would have the same with a probability of
// 10^-8, and a new one never takes the place of another. What it means for those who have a signing
// key is in SECURITY.md.
func (k cookieKey) id() string { return tagged(k.tag, k.secret.ID()) }

// isOfUser reports whether a public id has a tag.
func isOfUser(id string) bool { return strings.Contains(id, ".") }

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
	tag, rest := cutTag(raw)
	id, err := secret.IDOf(rest)
	if err != nil {
		return ""
	}
	return tagged(tag, id)
}

// parseKey reads what a cookie has signed. Its error does not repeat that.
func parseKey(raw []byte) (key cookieKey, err error) {
	tag, rest := cutTag(raw)
	key.tag = tag
	key.secret, err = secret.Parse(rest)
	return key, err
}

func cutTag(raw []byte) (tag, rest []byte) {
	if len(raw) == tagSize+secretSize {
		return raw[:tagSize], raw[tagSize:]
	}
	return nil, raw
}

// maxDevice is the longest that is kept of what Options.Device says.
const maxDevice = 256

// give makes the session that is to be stored that of a user who has just logged in; "": nobody has.
func (rq *request) give(record *records.Record, user string) {
	if user == "" {
		return
	}
	record.User, record.Device = user, ""
	if device := rq.sessions.options.Device; device != nil {
		text := device(rq.base)
		record.Device = strings.ToValidUTF8(text[:min(len(text), maxDevice)], "")
	}
}

// List returns the sessions of a user, newest first. It waits for nobody, and uses none of them. It
// asks Redis once, and once more for each 25 sessions. The one of a request is that whose ID is
// that of session.FromContext. A user who has none is no error, nor is "", which is what User returns
// where nobody is logged in.
//
// The error wraps store.ErrUnavailable, or store.ErrCorrupt where another program has written the list.
// A name of more than records.MaxUser bytes is an error, too. It is not logged: log it.
func (s *Sessions) List(ctx context.Context, user string) ([]Info, error) {
	if user == "" {
		return nil, nil
	}
	listed, err := s.store.ListUser(ctx, user, s.terms)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, len(listed))
	for i, l := range listed {
		// Round(0): these are for people, who would be shown the monotonic clock.
		infos[i] = Info{ID: l.ID, User: l.User, Device: l.Device, Created: l.Created,
			Seen: l.Seen.Round(0), Expires: l.Expires.Round(0)}
	}
	return infos, nil
}

// End ends the session with a public id at once, and waits for nobody: a request that holds it cannot
// save it any more, and neither Renew nor Login saves it; its context ends within a third of the store's
// Lease. Its client is logged out with its next request.
//
// The error wraps store.ErrNotFound where the id is unknown or its session has timed out,
// store.ErrGone where it was ended less than a minute ago, store.ErrCorrupt where what is stored is no
// session and was left as it is, or store.ErrUnavailable: it may have been
// ended all the same, and to call it again does no harm. What is no id at all is an error, too. None
// is logged: log it.
//
// Check whose session it is before a user may end it: [Sessions.List] has the ids of their own.
func (s *Sessions) End(ctx context.Context, id string) error {
	if !isID(id) {
		return errNoID
	}
	if err := s.store.End(ctx, id); err != nil {
		return err
	}
	s.options.Hooks.call(context.WithoutCancel(ctx), event{do: destroy, old: id})
	return nil
}

// EndAll ends all sessions of a user but those with the ids except, like [Sessions.End], in one step:
// there is no moment at which some are over and others are not. (While keys of store.Encryption are
// changed it is several steps: see P14 in PROMISES.md.) It returns how many there were, of which some
// may have timed out; fewer where a connection to Redis broke and the command was sent again, and then
// Hooks.End is not called for the others. 0 for a user who has none is no error.
//
// The error wraps store.ErrUnavailable: they may have been ended all the same, and to call it again does
// no harm. The name "" is an error, so that nobody believes that everybody was ended, and so is one of
// more than records.MaxUser bytes. None is logged: log it.
//
// To keep the session of the request itself after a new password, say:
//
//	n, err := sessions.EndAll(ctx, user, s.ID())
//	s.Renew()
//
// Without except it is over, too: call Destroy, so that the client forgets its cookie.
//
// A login whose request arrived before this was done is refused if it would be stored after it, with an
// error that wraps store.ErrGone: it may have checked a password that has been changed since. A request
// whose context ctx is, or is derived from, counts as one that has arrived after this.
//
// An except that is no id at all is an error, so that what was to be spared is not ended; "" spares none.
func (s *Sessions) EndAll(ctx context.Context, user string, except ...string) (int, error) {
	for _, id := range except {
		if id != "" && !isID(id) {
			return 0, errNoID
		}
	}
	ended, err := s.store.EndUser(ctx, user, except...)
	// What its own request has checked is not older than this.
	rq, _ := ctx.Value(requestKey{}).(*request)
	for ; rq != nil; rq = rq.outer {
		rq.arrive()
	}
	for _, id := range ended {
		s.options.Hooks.call(context.WithoutCancel(ctx), event{do: destroy, old: id})
	}
	return len(ended), err
}

// Info is what is known of a session without opening it.
type Info struct {
	// ID is the public id.
	ID string
	// User that the session belongs to, and Device where it was begun: see session.Login and
	// Options.Device. Both are empty for one that nobody has logged in to.
	User, Device string
	// Created is when the session began; a new id does not change it.
	Created time.Time
	// Seen is when the session was used last, to a second or so. It is zero where that is not known,
	// since nothing is written for it: of a session that is remembered, and in the last TTL of its
	// Lifetime.
	Seen time.Time
	// Expires is when the session ends if it is not used any more.
	Expires time.Time
}

// Peek looks at the session with a public id: it does not prolong it, and waits for nobody. The
// error wraps store.ErrNotFound where the id is unknown or its session has timed out,
// store.ErrGone where the session was ended less than a minute ago, store.ErrUnavailable, or what
// is wrong with the record.
func (s *Sessions) Peek(ctx context.Context, id string) (Info, error) {
	if !isID(id) {
		return Info{}, errNoID
	}
	record, expires, err := s.store.Peek(ctx, id, s.terms)
	if err != nil {
		return Info{}, err
	}
	return Info{ID: id, User: record.User, Device: record.Device, Created: record.Created,
		Seen: s.terms.Seen(record, time.Now(), expires).Round(0), Expires: expires.Round(0)}, nil
}

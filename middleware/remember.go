package middleware

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
)

var errCookieGone = errors.New("middleware: Remember has to set the cookie again, " +
	"and the handler has removed it from the header of the request")

// # Timeouts of a session's own
//
// They are in its record, and package store keeps to them: an end that Remember has chosen, idle or
// not, and until Renew a guest's idle timeout. The cookie lasts until the end, so whatever sets or
// moves that sets the cookie, too.

// changed returns what has become of a session's own timeouts: after a Renew, if renewed; after a
// Remember(d), if remembered.
func changed(own *records.Times, renewed, remembered bool, d time.Duration) *records.Times {
	var t records.Times
	if own != nil {
		t = *own
	}
	if renewed {
		t.Idle = 0
	}
	switch {
	case remembered && d > 0:
		t.Until = time.Now().Add(d)
	case remembered:
		t.Until = time.Time{}
	}
	if t == (records.Times{}) {
		return nil
	}
	return &t
}

// beginAnew makes a session whose time is over begin now, if somebody has logged in to it: one that was
// remembered beyond its Lifetime, and is no longer, or that has come to it in the hands of the handler.
func (s *Sessions) beginAnew(record *records.Record, loggedIn bool) {
	if now := time.Now(); loggedIn && !s.terms.Expires(*record, now).After(now) {
		record.Created = now
	}
}

// remember saves a session that is to have another end. Its id stays, and so does the cookie's
// value.
func (rq *request) remember(ctx context.Context, change keep.Change) error {
	own := changed(rq.hold.Record.Own, false, true, change.Remember)
	cookie, err := rq.cookieFor(own)
	if err != nil {
		return err
	}
	hold := rq.giveBack()
	hold.Record.Own = own
	if err = hold.SaveContent(ctx, change.Snapshot); err == nil {
		rq.cookie, rq.saved = cookie, true
		rq.note(hold.Record.Created, own)
	}
	return err
}

// cookieFor returns the cookie to be set since the session is to have another end. Where the client
// keeps a token there is nothing to be set; Sessions.Token sees to it, unless it was asked before.
func (rq *request) cookieFor(own *records.Times) (*http.Cookie, error) {
	s := rq.sessions
	switch byToken := s.cookies.token != nil; {
	case byToken && rq.cookie == nil:
		return nil, nil
	case !byToken && rq.begun:
		return nil, errCookieLate
	}
	value := rq.cookieValue()
	if value == "" {
		return nil, errCookieGone
	}
	return s.cookies.again(value, own)
}

// cookieValue returns the value of the session's cookie: of the one that this answer sets, since a
// commit before has begun the id, or of the one that the request came with.
func (rq *request) cookieValue() string {
	if rq.cookie != nil {
		return rq.cookie.Value
	}
	return rq.sessions.cookies.valueFor(rq.base, rq.knownID())
}

// endedNow is request.created where the session was ended by this request.
const endedNow = math.MinInt64

// note keeps what SessionExpires needs to know of the record that is stored.
func (rq *request) note(created time.Time, own *records.Times) {
	rq.idMu.Lock()
	defer rq.idMu.Unlock()
	rq.created, rq.own = 0, own
	if !created.IsZero() {
		rq.created = created.UnixMilli()
	}
}

// end notes that this request has ended the session.
func (rq *request) end() {
	rq.origin = ended
	rq.idMu.Lock()
	defer rq.idMu.Unlock()
	rq.created, rq.own = endedNow, nil
}

// SessionExpires implements keep.Keeper.
func (rq *request) SessionExpires(renewed, loggedIn, remembered bool, d time.Duration) time.Time {
	rq.idMu.Lock()
	created, own := rq.created, rq.own
	rq.idMu.Unlock()
	now := time.Now()
	record := records.Record{Created: time.UnixMilli(created), Own: own}
	switch created {
	case endedNow:
		return time.Time{}
	case 0: // it would begin now
		record = records.Record{Created: now, Own: rq.sessions.terms.Guest()}
	}
	record.Own = changed(record.Own, renewed, remembered, d)
	rq.sessions.beginAnew(&record, loggedIn)
	return rq.sessions.terms.Expires(record, now)
}

// lasting returns the cookie with that value. Where the session has an end of its own, it lasts
// until then, else for as long as the options say.
func (c *cookies) lasting(value string, own *records.Times) *http.Cookie {
	cookie := c.pattern
	cookie.Value = value
	if own != nil && !own.Until.IsZero() {
		left := (time.Until(own.Until) + time.Second - 1) / time.Second // it does not end before the session
		cookie.MaxAge = int(max(1, left))
	}
	return &cookie
}

// again returns the cookie with a genuine value, to be set again. The value stays the same as long
// as its signature lasts until the session's end, and is that of the newest key, since older ones are
// dropped in time; else it is signed anew.
func (c *cookies) again(value string, own *records.Times) (*http.Cookie, error) {
	plain, _ := strictBase64.DecodeString(value) // it was verified
	date, rest, _ := bytes.Cut(plain, []byte("|"))
	text, _, _ := bytes.Cut(rest, []byte("|"))
	signed, _ := strconv.ParseInt(string(date), 10, 64)
	lasts := own == nil || own.Until.Before(time.Unix(signed, 0).Add(keep.LongestCookie))
	if lasts && c.byNewestKey(plain) {
		return c.lasting(value, own), nil
	}
	raw, _ := base64.URLEncoding.DecodeString(string(text))
	known, err := parseKey(raw)
	if err != nil {
		return nil, err
	}
	return c.issue(known, own)
}

// byNewestKey reports whether the newest key has signed a value, which is decoded and genuine.
func (c *cookies) byNewestKey(plain []byte) bool {
	check := c.checkers.Get().(*checker)
	defer c.checkers.Put(check)
	_, _, ok := check.open(check.macs[0], plain)
	return ok
}

// valueFor returns the value of the request's cookie that stands for id, or "".
func (c *cookies) valueFor(r *http.Request, id string) string {
	check := c.checkers.Get().(*checker)
	defer c.checkers.Put(check)
	verified := 0
	for value := range valuesOf(r.Header["Cookie"], c.pattern.Name) {
		found, wellFormed := check.id(value)
		if found == id && id != "" {
			return value
		}
		if wellFormed {
			verified++
		}
		if verified == most {
			break
		}
	}
	return ""
}

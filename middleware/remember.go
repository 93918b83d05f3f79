package middleware

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
)

var errCookieGone = errors.New("middleware: Remember has to set the cookie again, " +
	"and the handler has removed it from the header of the request")

// # A session's own timeouts
//
// A record may have two timeouts, which internal/records enforces: an end that Remember has set, which holds
// even for an idle session; and, until Renew, a guest's idle timeout. The cookie lasts until the end that
// Remember has set, so a commit that changes this end also sets the cookie.

// ownTimeouts returns the new timeouts of a session whose timeouts were own.
func ownTimeouts(own *records.Times, c keep.Change) *records.Times {
	var t records.Times
	if own != nil {
		t = *own
	}
	if c.Renewed {
		t.Idle = 0
	}
	switch {
	case c.Remembered && c.Remember > 0:
		t.Until = time.Now().Add(c.Remember)
	case c.Remembered:
		t.Until = time.Time{}
	}
	if t == (records.Times{}) {
		return nil
	}
	return &t
}

// remember saves a session to which Remember has given another end. The ID and the cookie's value stay.
func (c *commit) remember(ctx context.Context) error {
	rq, hold := c.rq, c.rq.hold
	own := ownTimeouts(hold.Record.Own, c.change)
	cookie, err := rq.cookieUntil(own)
	if err != nil {
		return err
	}
	rq.hold, hold.Record.Own = nil, own
	err = hold.SaveContent(ctx, c.change.Snapshot)
	if err == nil {
		rq.changes().cookies[rq.role], rq.saved = cookie, true
		rq.identity.setStored(hold.Record.Created, own)
	}
	return err
}

// cookieUntil returns the cookie that the response must set because the session has another end now. Its value is
// the value of the cookie that this response sets, since an earlier commit has begun the ID, or else the value of
// the request's cookie. With Options.Token cookieUntil returns nil, unless the request has got a token before, by a
// commit or Sessions.Token: a later call of Sessions.Token reissues the token.
func (rq *request) cookieUntil(own *records.Times) (*http.Cookie, error) {
	c := &rq.sessions.cookies
	switch {
	case rq.cookie(rq.role) == nil && c.token != nil:
		return nil, nil
	case rq.begun && c.token == nil:
		return nil, errCookieLate
	case rq.cookie(rq.role) != nil:
		return c.reissue(rq.role, rq.cookie(rq.role).Value, own)
	}
	id, came := rq.identity.knownID(), ""
	c.eachVerified(rq.base, func(of role, value, found string, _ verified) {
		if of == rq.role && found == id && id != "" {
			came = cmp.Or(came, value)
		}
	})
	if came == "" {
		return nil, errCookieGone
	}
	return c.reissue(rq.role, came, own)
}

// withValue returns the cookie of a role with that value. If Remember has set the session's end, the cookie lasts until
// then. Otherwise it lasts for as long as the options say.
func (c *cookies) withValue(of role, value string, own *records.Times) *http.Cookie {
	cookie := c.pattern
	cookie.Name, cookie.Value = c.names[of], value
	if own != nil && !own.Until.IsZero() {
		left := (time.Until(own.Until) + time.Second - 1) / time.Second // rounded up: the cookie must not end before the session
		cookie.MaxAge = int(max(1, left))
	}
	return &cookie
}

// reissue returns a cookie with a genuine value, for a response that sets it again. The value stays the same if
// its signature lasts until the session's end and was made with the newest key. Otherwise reissue signs the value
// anew: an older key will be removed at some time.
func (c *cookies) reissue(of role, value string, own *records.Times) (*http.Cookie, error) {
	check := c.checkers.Get().(*checker)
	defer c.checkers.Put(check)
	plain, _ := strictBase64.DecodeString(value) // it was verified
	for age, mac := range check.macs {
		date, text, ok := check.signed(of, mac, plain)
		switch {
		case !ok:
		case age == 0 && (own == nil || own.Until.Before(date.Add(keep.LongestCookie))):
			return c.withValue(of, value, own), nil
		default:
			raw, _ := base64.URLEncoding.DecodeString(string(text))
			return c.issue(of, raw, own)
		}
	}
	return nil, errCookieGone // its signature has expired by now
}

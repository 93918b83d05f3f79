package sessiontest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gorilla/securecookie"
)

// Session returns the client's session as it is stored. If nothing is stored, it returns an empty session,
// for which IsNew is true. The session is a copy for reading: changing it fails the test. Session does not
// wait for requests that hold the session, and does not extend the idle timeout.
func (st *Site) Session(c *http.Client) *session.Session {
	st.tb.Helper()
	config := keep.Config{}
	id := st.find(c)
	if id != "" {
		// With the shortest timeout, since a read never shortens the stored timeout.
		record, err := records.Of(st.store).Load(context.Background(), id, records.Terms{})
		switch {
		case err == nil:
			config.Data, config.User = record.Data, record.User
			if record.User != "" {
				config.LoginTime = record.Created
			}
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrGone):
		default:
			st.tb.Fatalf("sessiontest: Session: %v", err)
		}
	}
	config.Keeper = reader{st, id}
	s := new(session.Session)
	if err := keep.Open(s, config); err != nil {
		st.tb.Fatalf("sessiontest: Session: %v", err)
	}
	_, _ = keep.Close(s, "sessiontest.Session") // from now on changes are reported
	return s
}

// Token returns the token of the session that Client has made, for programs with middleware.Options.Token.
// Client does not know where such a program expects the token, so the test puts it into each request. After a
// Renew the session has a new token, which the client does not know.
func (st *Site) Token(c *http.Client) string {
	st.tb.Helper()
	cookies := st.cookiesOf(c)
	if len(cookies) == 0 {
		st.tb.Fatalf("sessiontest: Token: the client has no session")
		return ""
	}
	// A cookie is signed together with its name. The token of a user's session has the name of a guest's cookie.
	signer := securecookie.New(st.hidden.Keys[0], nil).SetSerializer(securecookie.NopEncoder{}).MaxAge(0)
	var secret []byte
	err := signer.Decode(cookies[0].Name, cookies[0].Value, &secret)
	if err != nil {
		st.tb.Fatalf("sessiontest: Token: %v", err)
	}
	token, err := signer.Encode(st.cookieName(), secret)
	if err != nil {
		st.tb.Fatalf("sessiontest: Token: %v", err)
	}
	return token
}

// A reader is the keeper of a session that is only read.
type reader struct {
	site *Site
	id   string
}

func (r reader) SessionID() string { return r.id }

// SessionExpires returns the time that is stored in Redis.
func (r reader) SessionExpires(keep.Change) time.Time {
	left := r.site.redis.mini.TTL(keyOf(r.id))
	if left <= 0 {
		return time.Time{}
	}
	return time.Now().Add(left)
}

func (r reader) CommitSession(context.Context) error { return session.ErrReadOnly }

func (r reader) ReopenSession(context.Context) error { return session.ErrReadOnly }

func (r reader) TouchSession(context.Context) error { return session.ErrReadOnly }

func (r reader) ChangedLate(method, key, _ string) {
	r.site.tb.Errorf("sessiontest: %s(%q) changes what Session returned, which is a copy: fill a session with Client", method, key)
}

// Busy makes another request hold the client's session, until release is called or the test ends. Requests
// that need the session wait, up to LockWait. Requests in mode ReadOnly do not wait, and those in mode
// Optimistic only if they change the session. Busy itself waits for requests that hold the session.
func (st *Site) Busy(c *http.Client) (release func()) {
	st.tb.Helper()
	hold := st.take("Busy", c)
	release = sync.OnceFunc(func() { hold.Release(context.Background()) })
	st.tb.Cleanup(release)
	return release
}

// Change lets another request change the client's session. It waits for a request that holds the session. If
// a handler in mode Optimistic calls Change and changes the session itself, the handler runs a second time.
func (st *Site) Change(c *http.Client, change func(*session.Session)) {
	st.tb.Helper()
	st.id("Change", c)
	isOver := false
	st.hiddenRequest("Change", st.cookiesOf(c), func(s *session.Session) {
		isOver = s.IsNew()
		if !isOver {
			change(s)
		}
	})
	if isOver {
		st.tb.Fatalf("sessiontest: Change: the client's session has ended or expired")
	}
}

// Lose takes the lock away from the request that holds the client's session, as a pause of the process would.
// The request cannot save any more, and gets store.ErrLost; within a second its context ends. If it has only
// read the session, it is answered normally.
func (st *Site) Lose(c *http.Client) {
	st.tb.Helper()
	if !st.redis.mini.Del(st.record("Lose", c) + ".lock") {
		st.tb.Fatalf("sessiontest: Lose: no request holds the client's session")
	}
}

// End ends the client's session as Sessions.End elsewhere does, and leaves the client its cookie. End waits for a
// request that holds the session.
func (st *Site) End(c *http.Client) {
	st.tb.Helper()
	if err := st.take("End", c).Destroy(context.Background()); err != nil {
		st.tb.Fatalf("sessiontest: End: %v", err)
	}
}

// Expire lets the client's session expire, as if it had not been used for its idle timeout. A session that a
// request holds does not expire.
func (st *Site) Expire(c *http.Client) {
	st.tb.Helper()
	record := st.record("Expire", c)
	if st.redis.mini.Exists(record + ".lock") {
		st.tb.Fatalf("sessiontest: Expire: a request holds the client's session, so it does not expire")
	}
	st.redis.mini.Del(record)
}

// Down makes Redis unreachable until up is called or the test ends. Redis keeps its data.
func (st *Site) Down() (up func()) {
	up = st.redis.during(&st.redis.down)
	st.redis.hangUp()
	st.tb.Cleanup(up)
	return up
}

// Full makes Redis refuse commands that need memory, as a Redis at its maxmemory with the policy noeviction
// does, until free is called or the test ends.
func (st *Site) Full() (free func()) {
	free = st.redis.during(&st.redis.full)
	st.tb.Cleanup(free)
	return free
}

// take waits for the client's session, and holds it.
func (st *Site) take(doing string, c *http.Client) *records.Hold {
	st.tb.Helper()
	const long = 24 * time.Hour
	hold, _, err := records.Of(st.store).Take(context.Background(), st.id(doing, c), records.Terms{MaxHold: long, Label: "sessiontest." + doing})
	if err != nil {
		st.tb.Fatalf("sessiontest: %s: %v", doing, err)
	}
	return hold
}

// record returns the key of the client's record.
func (st *Site) record(doing string, c *http.Client) string {
	st.tb.Helper()
	return keyOf(st.id(doing, c))
}

// id returns the ID of the client's session, which must have one.
func (st *Site) id(doing string, c *http.Client) string {
	st.tb.Helper()
	id := st.find(c)
	if id == "" {
		st.tb.Fatalf("sessiontest: %s: the client has no session", doing)
	}
	return id
}

// find returns the ID of the first of the client's cookies that leads to a session, or of the first, or "".
func (st *Site) find(c *http.Client) (found string) {
	for _, cookie := range st.cookiesOf(c) {
		id, ok := st.cookies.ID(cookie.Value)
		if !ok {
			continue
		}
		found = cmp.Or(found, id)
		_, err := records.Of(st.store).Load(context.Background(), id, records.Terms{})
		if !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrGone) {
			return id
		}
	}
	return found
}

// keyOf returns the key of a record; see package records.
func keyOf(id string) string {
	if tag, rest, ofUser := strings.Cut(id, "."); ofUser {
		return records.DefaultPrefix + "{" + tag + "}:" + rest
	}
	return records.DefaultPrefix + "{" + id + "}"
}

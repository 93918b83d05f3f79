package sessiontest

import (
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
)

// Session returns what is stored of the client's session: an empty one, which IsNew, where there
// is nothing. It is a copy for reading: changing it fails the test. Nothing waits for it, and it
// does not extend the idle timeout.
func (st *Site) Session(c *http.Client) *session.Session {
	st.tb.Helper()
	config := keep.Config{}
	id := st.find(c)
	if id != "" {
		// With the shortest timeout, since a read never makes the one that is there shorter.
		record, err := records.Of(st.store).Load(context.Background(), id, records.Terms{})
		switch {
		case err == nil:
			config.Data, config.User = record.Data, record.User
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

// Token returns the token of the session that Client has made, for programs with
// middleware.Options.Token. Client knows nothing of where such a program looks for it, so the test
// puts it into each request. A Renew gives it a new one, which the client does not get to know.
func (st *Site) Token(c *http.Client) string {
	st.tb.Helper()
	for _, cookie := range st.cookiesOf(c) {
		return cookie.Value
	}
	st.tb.Fatalf("sessiontest: Token: the client has no session")
	return ""
}

// A reader keeps a session that is only read.
type reader struct {
	site *Site
	id   string
}

func (r reader) SessionID() string { return r.id }

// SessionExpires returns what Redis says: a handler sees it a moment later, and so do others.
func (r reader) SessionExpires(bool, bool, bool, time.Duration) time.Time {
	left := r.site.redis.mini.TTL(keyOf(r.id))
	if left <= 0 {
		return time.Time{}
	}
	return time.Now().Add(left)
}

func (r reader) CommitSession(context.Context) error { return session.ErrReadOnly }

func (r reader) ReopenSession(context.Context) error { return session.ErrReadOnly }

func (r reader) ChangedLate(method, key, _ string) {
	r.site.tb.Errorf("sessiontest: %s(%q) changes what Session returned, which is a copy: fill a session with Client", method, key)
}

// Busy makes another request hold the client's session, until release is called or the test
// ends. Requests that need it wait, up to LockWait. Those in mode ReadOnly do not, and those in mode
// Optimistic only if they change it. Busy itself waits for requests that hold the session.
func (st *Site) Busy(c *http.Client) (release func()) {
	st.tb.Helper()
	hold := st.take("Busy", c)
	release = sync.OnceFunc(func() { hold.Release(context.Background()) })
	st.tb.Cleanup(release)
	return release
}

// Change lets another request change the client's session. It waits for a request that holds the
// session. Called by a handler in mode Optimistic that changes the session, too, it makes that
// handler run a second time.
func (st *Site) Change(c *http.Client, change func(*session.Session)) {
	st.tb.Helper()
	st.id("Change", c)
	st.hiddenRequest("Change", st.cookiesOf(c), change)
}

// Lose takes the lock away from the request that holds the client's session, as a pause of the
// process would. It cannot save any more, and gets store.ErrLost; within a second its context
// ends. What it has only read is answered.
func (st *Site) Lose(c *http.Client) {
	st.tb.Helper()
	if !st.redis.mini.Del(st.record("Lose", c) + ".lock") {
		st.tb.Fatalf("sessiontest: Lose: no request holds the client's session")
	}
}

// End ends the client's session as a logout elsewhere does, and leaves the client its cookie. It
// waits for a request that holds the session.
func (st *Site) End(c *http.Client) {
	st.tb.Helper()
	if err := st.take("End", c).Destroy(context.Background()); err != nil {
		st.tb.Fatalf("sessiontest: End: %v", err)
	}
}

// Expire lets the client's session run out, as if it had not been used for its idle timeout. One
// that a request holds does not run out.
func (st *Site) Expire(c *http.Client) {
	st.tb.Helper()
	record := st.record("Expire", c)
	if st.redis.mini.Exists(record + ".lock") {
		st.tb.Fatalf("sessiontest: Expire: a request holds the client's session, so it does not run out")
	}
	st.redis.mini.Del(record)
}

// Down makes Redis unreachable until up is called or the test ends. Its data stay.
func (st *Site) Down() (up func()) {
	up = st.redis.during(&st.redis.down)
	st.redis.hangUp()
	st.tb.Cleanup(up)
	return up
}

// Full makes Redis refuse what needs memory, as one does that has reached its maxmemory and must
// not evict anything, until free is called or the test ends.
func (st *Site) Full() (free func()) {
	free = st.redis.during(&st.redis.full)
	st.tb.Cleanup(free)
	return free
}

// take waits for the client's session, and holds it.
func (st *Site) take(doing string, c *http.Client) *records.Hold {
	st.tb.Helper()
	const long = 24 * time.Hour
	hold, err := records.Of(st.store).Take(context.Background(), st.id(doing, c), records.Terms{MaxHold: long, Label: "sessiontest." + doing})
	if err != nil {
		st.tb.Fatalf("sessiontest: %s: %v", doing, err)
	}
	return hold
}

// record returns the key of the client's record; see package store.
func (st *Site) record(doing string, c *http.Client) string {
	st.tb.Helper()
	return keyOf(st.id(doing, c))
}

// id returns the id of the client's session, which must have one.
func (st *Site) id(doing string, c *http.Client) string {
	st.tb.Helper()
	id := st.find(c)
	if id == "" {
		st.tb.Fatalf("sessiontest: %s: the client has no session", doing)
	}
	return id
}

// find returns the id that the client's cookie stands for, or "".
func (st *Site) find(c *http.Client) string {
	for _, cookie := range st.cookiesOf(c) {
		if id, ok := st.Sessions.ID(cookie.Value); ok {
			return id
		}
	}
	return ""
}

// keyOf returns the key of a record; see package store.
func keyOf(id string) string {
	if tag, rest, ofUser := strings.Cut(id, "."); ofUser {
		return records.DefaultPrefix + "{" + tag + "}:" + rest
	}
	return records.DefaultPrefix + "{" + id + "}"
}

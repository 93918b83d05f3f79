package middleware

import (
	"cmp"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/secret"
)

// An identity says which session a request has, and what is stored of that session. It has a separate mutex,
// since Session.ID and Session.Expires may be called, and a late change may be logged, while request.mu is
// held for a commit.
type identity struct {
	arrived  time.Time         // does not change
	mu       sync.Mutex        // guards the rest; nothing else is locked while it is held
	route    string            // the pattern that the router has matched, without its method; or empty, if it is not known
	id       string            // the public ID; empty until a new session needs one
	secret   secret.Secret     // of a new session that has an ID
	created  int64             // when the stored session began, in Unix ms; 0: nothing is stored; or endedNow
	own      *records.Times    // of the stored session
	endedAll map[string]endAll // by user: this request has ended all sessions of the user
}

// An endAll is what a request remembers of an EndAll that it has called.
type endAll struct {
	at  time.Time // when the last one was done
	own string    // the ID of the request's own session, if one of them has ended that
}

// endedNow is identity.created of a session that this request has ended.
const endedNow = math.MinInt64

// sessionID returns the public ID. A new session gets its secret when sessionID is first called, since most
// new sessions never need a secret.
func (i *identity) sessionID() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.id == "" {
		i.secret = secret.New()
		i.id = i.secret.ID()
	}
	return i.id
}

// knownID returns the public ID, or "" if the session has none yet.
func (i *identity) knownID() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.id
}

// known returns what knownID returns, and the route, if it is known.
func (i *identity) known() (id, route string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.id, i.route
}

func (i *identity) setID(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.id = id
}

// setStored remembers what SessionExpires needs to know about the stored record.
func (i *identity) setStored(created time.Time, own *records.Times) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.created, i.own = 0, own
	if !created.IsZero() {
		i.created = created.UnixMilli()
	}
}

// setEnded remembers that this request has ended the session.
func (i *identity) setEnded() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.created, i.own = endedNow, nil
}

// stored returns what setStored and setEnded have remembered.
func (i *identity) stored() (created int64, own *records.Times) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.created, i.own
}

// setPattern remembers the route of a pattern, unless a route is known already.
func (i *identity) setPattern(pattern string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.route == "" {
		i.route = withoutMethod(pattern)
	}
}

// loginArrived returns when a login of the user counts as having arrived: when this request has ended all sessions of
// the user or, if it has not, when the request itself arrived.
func (i *identity) loginArrived(user string) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if ended, ok := i.endedAll[user]; ok {
		return ended.at
	}
	return i.arrived
}

// hasEndedAll remembers that this request has ended all sessions of the user. own is the ID of its own session, if that was
// one of them, or "".
func (i *identity) hasEndedAll(user, own string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.endedAll == nil {
		i.endedAll = make(map[string]endAll)
	}
	i.endedAll[user] = endAll{time.Now(), cmp.Or(own, i.endedAll[user].own)}
}

// hasEndedOwn reports whether this request has ended its present session, with all others of the user.
func (i *identity) hasEndedOwn(user string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.id != "" && i.endedAll[user].own == i.id
}

// allEnded returns a copy of endedAll, for the second run of a handler.
func (i *identity) allEnded() map[string]endAll {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.endedAll)
}

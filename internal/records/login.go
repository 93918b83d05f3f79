package records

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// A Login is what [Engine.CreateRecord] and [Hold.Renew] need to know of a request that logs a user in, by [WithLogin],
// and what they say of it.
type Login struct {
	// Arrived is when the request arrived. The login is refused with [ErrGone] if the user's sessions were ended since
	// then, or if the request arrived more than an hour ago. Default: the time of the call.
	Arrived time.Time
	// Instead are sessions. Those that are the same user's, and unclaimed, give way to the new one.
	Instead []string

	// Surplus are the sessions that the login has ended because of Terms.MaxSessions, even if it then failed.
	Surplus []string
}

type loginKey struct{}

// WithLogin returns a context for a login.
func WithLogin(ctx context.Context, l *Login) context.Context {
	return context.WithValue(ctx, loginKey{}, l)
}

// loginIn returns the login of a context, which may be empty.
func loginIn(ctx context.Context) *Login {
	if l, ok := ctx.Value(loginKey{}).(*Login); ok {
		return l
	}
	return new(Login)
}

// instead returns those of the sessions that have the tag of keys, without it, for login.lua.
func (l *Login) instead(s *Engine, keys sessionKeys) string {
	var all []string
	for _, id := range l.Instead {
		if tag, rest, ofUser := cutTag(id); ofUser && s.listKey(tag) == keys.list {
			all = append(all, rest)
		}
	}
	return strings.Join(all, " ")
}

var errTag = errors.New("store: the ID of a user's session begins with the user's tag, and no other does")

// prepareLogin turns x, which creates the record of a user's session, into a login, which also puts the
// session on the list. old is the ID of the session that it replaces, or "". For instead see unclaimed.go.
func (s *Engine) prepareLogin(
	x *scripting.RoundTrip, keys sessionKeys, old, instead string, r *Record, t Terms, now time.Time,
) {
	before := ""
	if tag, rest, ofUser := cutTag(old); ofUser && s.listKey(tag) == keys.list {
		before = rest
	}
	refuse, most := 0, t.MaxSessions-1
	if t.RefuseLogin {
		refuse = 1
	}
	if s.isOf(old, r.User) { // the number of sessions does not grow
		most = -1
	}
	x.Script = loginScript
	x.Args = append(x.Args, t.left(r, now).Milliseconds(), before, most, refuse, newEpoch(), instead)
}

// isOf reports whether id is that of a session of the user.
func (s *Engine) isOf(id, user string) bool {
	tag, _, ofUser := cutTag(id)
	return ofUser && slices.ContainsFunc(s.tags(user), func(its [tagBytes]byte) bool {
		return base64.RawURLEncoding.EncodeToString(its[:]) == tag
	})
}

// The replies of login.lua that refuse a login, beside 0: the ID exists.
const (
	loginTooMany = 2
	loginEnded   = 3
	loginCrowded = 4
)

// errCrowded is no refusal: runLogin tries again.
var errCrowded = errors.New("store: an unclaimed session would give way")

// login runs a login once. It returns the surplus of the user's list: the sessions beyond MaxSessions. Once
// the record is stored, another run only counts.
func (s *Engine) login(ctx context.Context, x scripting.RoundTrip, within time.Duration, arrived time.Time) (surplus []string, err error) {
	reply, err := s.inTime(ctx, x, within, arrived)
	if err != nil {
		return nil, err
	}
	switch n, refused := reply.Int(); {
	case refused && n == loginTooMany:
		return nil, ErrTooManySessions
	case refused && n == loginEnded:
		return nil, ErrGone
	case refused:
		return nil, errTaken
	}
	if n, _ := reply.IntAt(0); n == loginCrowded {
		return nil, errCrowded
	}
	for i := 1; i < reply.Len(); i++ {
		member, ok := reply.TextAt(i)
		if !ok {
			return nil, lease.Unexpected(reply)
		}
		surplus = append(surplus, member)
	}
	return surplus, nil
}

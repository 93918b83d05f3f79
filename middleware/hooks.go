package middleware

import (
	"context"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
)

// Hooks are called when sessions begin, get another ID, or end: for audit logs. A nil hook is not called.
//
// Each hook is called once, after the commit has succeeded, and gets public IDs only. A slow hook does not
// make other requests wait, since the lock is released before. But the response waits: a hook is called
// before the response's first byte, unless the handler has sent that byte already. Neither a commit
// that fails nor a handler that panics calls a hook, with two exceptions:
//
//   - If a session gives way to a newer login, its End is called when the request that comes back with that login
//     commits, even if the commit fails, or the handler panics.
//   - A login or a logout may take several steps. If one of them fails, the hooks of the steps before are called
//     nevertheless: such as the End of a session that MaxSessions has ended for a login that then fails.
//
// A hook can be missed: a commit that failed with store.ErrUnavailable may have taken effect, and the process may die
// after a commit.
//
// The context has the values of the handler's context, or of the context that Update was called with. The
// context does not end, so that a client that goes away does not keep a line out of the log. From the
// handler's context session.FromContext returns the session, which is closed: a hook may read the session,
// but to change it is a mistake, as after any commit. A panic in a hook goes on like a panic in the handler or
// in Update's function, but the saved changes stay saved.
//
// No hook is called for sessions that expire, or that are deleted in Redis by other means. But EndAll may call End for
// a session of the user that has expired a short time before.
type Hooks struct {
	// Begin is called when the first record of a session was stored.
	Begin func(ctx context.Context, id string)
	// Renew is called when a session has got another ID, by Session.Renew or Login, or by Remember if a user
	// is logged in. The old ID is dead.
	Renew func(ctx context.Context, old, id string)
	// End is called when a session was ended: by Session.Destroy, Sessions.End or EndAll; by Remember(0) of a login
	// that is older than Lifetime; by a login because of Options.MaxSessions; because the same user has logged in
	// again and nobody had come back with it; or because another user has logged in with its old ID.
	End func(ctx context.Context, id string)
}

// An idEvent is what hooks are called for: a session's ID has begun, was replaced, or has ended.
type idEvent struct {
	do      action // what the commit has done: create, renew or destroy
	old, id string
	how     string // for observers: see SessionEvent
}

// endOf returns the event that the session with an ID has ended.
func endOf(id, how string) idEvent { return idEvent{do: destroy, old: id, how: how} }

// happened tells the observers of an event, and calls its hook, with the values of ctx.
func (s *Sessions) happened(ctx context.Context, e idEvent) {
	ctx = context.WithoutCancel(ctx)
	if len(s.backlogs) > 0 {
		s.store.Tell(ctx, e.notice())
	}
	h := &s.options.Hooks
	switch e.do {
	case create:
		if h.Begin != nil {
			h.Begin(ctx, e.id)
		}
	case renew:
		if h.Renew != nil {
			h.Renew(ctx, e.old, e.id)
		}
	case destroy:
		if h.End != nil {
			h.End(ctx, e.old)
		}
	}
}

// notice returns what observers are told.
func (e idEvent) notice() *records.Notice {
	n := &records.Notice{Session: e.old, How: e.how, Time: time.Now()}
	switch e.do {
	case create:
		n.Session, n.What = e.id, "began"
	case renew:
		n.What, n.To = "renewed", e.id
	case destroy:
		n.What = "ended"
	}
	return n
}

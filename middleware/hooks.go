package middleware

import "context"

// Hooks are called when sessions begin, get another id, or end: for audit logs. Those that are nil
// are left out.
//
// Each is called once, after the commit that has made it true, with public ids only. It may be slow
// without making others wait, since the session is free by then; but the answer waits for it: a
// hook comes before the answer's first byte, unless the handler has sent that before. A commit that
// fails calls none. If the error is store.ErrUnavailable, what it was to do may have been done all
// the same; and so it may be if the process dies after a commit, so a log can lack a line.
//
// The context has the values of the handler's, or of the one that Update was called with, but it
// does not end: a client that goes away must not keep a line out of the log. In the handler's,
// session.FromContext finds the session, which is closed: it can be read, and changing it is the
// mistake that it is after any commit. A panic in a hook goes on like one in the handler, or in
// Update's function, but what was saved stays saved.
//
// A session that runs out is not seen by anybody, so no hook is called; nor for one that a login ends
// because of MaxSessions, or that is removed from Redis by other means.
type Hooks struct {
	// Begin is called when the first record of a session was stored.
	Begin func(ctx context.Context, id string)
	// Renew is called when a session has got another id, by session.Renew or Login, or if it is a
	// user's by Remember. The old one is dead.
	Renew func(ctx context.Context, old, id string)
	// End is called when a session was ended by session.Destroy, Sessions.End or EndAll.
	End func(ctx context.Context, id string)
}

// An event is what hooks are called for. The zero event is none.
type event struct {
	do      action // what the commit has done: create, anew, renew or destroy
	old, id string
}

// leaveCommit releases mu, and then calls the hook for what the commit has done.
func (rq *request) leaveCommit(done *event) {
	rq.mu.Unlock()
	h := &rq.sessions.options.Hooks
	if done.do == leave || h.Begin == nil && h.Renew == nil && h.End == nil {
		return
	}
	ctx := context.Context(&rq.context)
	if rq.lazy != nil {
		ctx = rq.lazy
	}
	h.call(context.WithoutCancel(ctx), *done)
}

func (h *Hooks) call(ctx context.Context, e event) {
	switch e.do {
	case create, anew:
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

package middleware

import (
	"context"
	"sync"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/session"
)

type requestKey struct{}

// A handlerContext is the context of a handler. It holds the request and, unless the mode is Lazy,
// its session, and ends when the handler has returned, the lock is lost, or the session has ended.
//
// Most handlers neither wait for the end of their context nor derive a cancellable context from it. So the
// context that package context needs for either is made only on demand, which spares a request half a
// microsecond and seven allocations.
type handlerContext struct {
	context.Context // of the request as it came in
	request         *request
	session         *session.Session // set before the handler runs; nil in mode Lazy
	mayRunAgain     bool             // the handler; set before it runs

	mu       sync.Mutex // guards the rest
	own      context.Context
	cancel   context.CancelCauseFunc // ends own
	ended    bool                    // without a cause, before own was made
	returned bool                    // the handler has returned
	waiting  context.CancelCauseFunc // ends a Reopen that waits; nil if there is none
	routing  *routing                // of a chi router; nil until it is asked for
}

// String hides the fields from code that prints a context, since the fields change.
func (c *handlerContext) String() string { return "middleware: the context of a handler" }

// endContext ends the context. A cause is for context.Cause; nil is the end of the handler.
func (c *handlerContext) endContext(cause error) {
	if cause == nil {
		c.endReopen()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own == nil && cause == nil {
		c.ended = true
		return
	}
	c.derive()
	c.cancel(cause)
}

// endReopen ends a Reopen that waits while the handler returns. It does so before the context ends, so that the error says
// why, and without mu: the context of that Reopen may be derived from this one, which it asks for Done.
func (c *handlerContext) endReopen() {
	c.mu.Lock()
	waiting := c.waiting
	c.returned, c.waiting = true, nil
	c.mu.Unlock()
	if waiting != nil {
		waiting(errReturned)
	}
}

// awaitReturn arranges for cancel to be called when the handler returns, for a Reopen that waits. The
// handlerContext also ends then, but it may end before for reasons that do not concern a Reopen, such as a
// client that has gone away.
func (c *handlerContext) awaitReturn(cancel context.CancelCauseFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.returned {
		return errReturned
	}
	c.waiting = cancel
	return nil
}

func (c *handlerContext) stopAwaiting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = nil
}

// derive makes own, unless it exists. It is called with mu held.
func (c *handlerContext) derive() {
	if c.own != nil {
		return
	}
	c.own, c.cancel = context.WithCancelCause(c.Context)
	if c.ended {
		c.cancel(nil)
	}
}

func (c *handlerContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.derive()
	return c.own.Done()
}

func (c *handlerContext) Err() error { return c.current().Err() }

// Value also finds own, if it exists, for package context. So context.Cause says why it has ended, and
// contexts that are derived from a handlerContext need no goroutine.
func (c *handlerContext) Value(key any) any {
	switch key := key.(type) {
	case requestKey:
		return c.request
	case records.CollectorKey:
		if c.request.seen != nil && key.Of == c.request.sessions.store && len(c.request.sessions.backlogs) > 0 {
			return c.request.seen
		}
	case keep.ContextKey:
		if c.session != nil {
			return c.session
		}
	}
	value := c.current().Value(key)
	if c.mayRunAgain && isChiContext(value) {
		c.keepRouting(value)
	}
	return value
}

// current returns own or, as long as the two do not differ, the context that own is derived from.
func (c *handlerContext) current() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own == nil && !c.ended {
		return c.Context
	}
	c.derive()
	return c.own
}

// requestOf returns the request of s that ctx holds, or nil.
func (s *Sessions) requestOf(ctx context.Context) *request {
	rq, _ := ctx.Value(requestKey{}).(*request)
	for rq != nil && rq.sessions != s {
		rq = rq.outer
	}
	return rq
}

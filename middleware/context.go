package middleware

import (
	"context"
	"sync"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

type requestKey struct{}

// A handlerContext is the context of a handler. It holds the request and, unless the mode is Lazy,
// its session, and ends when the handler has returned or the lock is lost.
//
// Most handlers neither wait for its end nor derive a cancellable context from it. So what package
// context needs for that is only made when it is asked for, which spares a request half a
// microsecond and seven allocations.
type handlerContext struct {
	context.Context // of the request as it came in
	request         *request
	session         *session.Session // set before the handler runs; nil in mode Lazy

	mu       sync.Mutex // guards the rest
	own      context.Context
	cancel   context.CancelCauseFunc // ends own
	ended    bool                    // without a cause, before own was made
	returned bool                    // the handler has
	waiting  context.CancelCauseFunc // ends a Reopen that waits; nil if there is none
}

// String is for those who print a context: what is in it changes.
func (c *handlerContext) String() string { return "middleware: the context of a handler" }

// endContext ends the context. A cause is for context.Cause; nil is the end of the handler.
func (c *handlerContext) endContext(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.returned = c.returned || cause == nil
	if c.returned && c.waiting != nil {
		c.waiting(errReturned)
	}
	if c.own == nil && cause == nil {
		c.ended = true
		return
	}
	c.derive()
	c.cancel(cause)
}

// awaitReturn arranges for cancel to be called when the handler returns, for a Reopen that waits. A
// handlerContext ends then, too, but also for reasons that need not concern a waiter, such as a
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

// derive makes own, unless it is there. It is called with mu held.
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

// Value also finds what package context looks for: own, if there is one. So context.Cause says why
// the lock was lost, and contexts that are derived from this one need no goroutine.
func (c *handlerContext) Value(key any) any {
	switch key.(type) {
	case requestKey:
		return c.request
	case keep.ContextKey:
		if c.session != nil {
			return c.session
		}
	}
	return c.current().Value(key)
}

// current returns own or, as long as that would say the same, the context that it is derived from.
func (c *handlerContext) current() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own == nil && !c.ended {
		return c.Context
	}
	c.derive()
	return c.own
}

// requestOf returns the request that ctx holds and that is s's own, or nil.
func (s *Sessions) requestOf(ctx context.Context) *request {
	rq, _ := ctx.Value(requestKey{}).(*request)
	for rq != nil && rq.sessions != s {
		rq = rq.outer
	}
	return rq
}

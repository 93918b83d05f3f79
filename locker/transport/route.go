package transport

import "context"

// A Route is the way of one round trip, for those who observe it. A client that knows the way notes it in the Route of
// Do's context, before Do returns and in the goroutine that has called Do.
type Route struct {
	// Node is the address, host:port, of the server that was asked last.
	Node string
	// Moved and Asked count the redirections by MOVED and ASK.
	Moved, Asked int
}

// Routed is a context for one Do, in which a client notes the Route.
type Routed struct {
	context.Context
	Route
}

// RouteIn returns the Route of a context that is a *Routed, or nil: nobody wants to know. It does not look into the contexts
// from which ctx is derived, since that would cost each round trip time.
func RouteIn(ctx context.Context) *Route {
	if r, ok := ctx.(*Routed); ok {
		return &r.Route
	}
	return nil
}

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

type routeKey struct{}

// WithRoute returns a context for Do with a Route.
func WithRoute(ctx context.Context, r *Route) context.Context {
	return context.WithValue(ctx, routeKey{}, r)
}

// RouteIn returns the Route of a context, or nil if nobody wants to know.
func RouteIn(ctx context.Context) *Route {
	r, _ := ctx.Value(routeKey{}).(*Route)
	return r
}

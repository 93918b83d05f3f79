package transport

import "context"

// A Route says which server has replied to a round trip, and how often the client was sent to another server.
type Route struct {
	// Node is the address, host:port, of that server. It is empty if the client does not know it.
	Node string
	// Database is the number of its database that was used. It is empty if the client does not know it.
	Database string
	// Moved and Asked count the redirections by MOVED and ASK.
	Moved, Asked int
}

// A RoutedClient is a Client that knows the Route of each round trip.
type RoutedClient interface {
	Client
	// DoRouted is Do, and also returns the Route, as far as it is known after an error. It is called instead of Do if
	// there is an observer. So a type that embeds a client, and has a Do of its own, needs a DoRouted of its own, too.
	DoRouted(ctx context.Context, key string, commands ...Command) ([]any, Route, error)
}

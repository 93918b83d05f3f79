package redistest

import (
	"net"
	"testing"
)

// Embedded starts package fakeredis in real time, at an address that it chooses. It starts immediately
// and needs nothing installed.
func Embedded(tb testing.TB) *Server {
	tb.Helper()
	return newServer(tb, &memory{listen: func(address string) (net.Listener, error) { return net.Listen("tcp", address) }})
}

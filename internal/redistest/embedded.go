package redistest

import (
	"net"
	"testing"
)

// Embedded starts package fakeredis at an address of its own, in real time. It starts in no time
// and needs nothing installed.
func Embedded(tb testing.TB) *Server {
	tb.Helper()
	return newServer(tb, &memory{listen: func(address string) (net.Listener, error) { return net.Listen("tcp", address) }})
}

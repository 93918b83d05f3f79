package locksite

import (
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Servers lends real servers, since a hundred of them would take long to start. No two tests share a
// server at the same time.
type Servers struct {
	TB testing.TB // the servers end with it

	mu   sync.Mutex
	idle []*redistest.Server
}

// Get returns an empty server until t ends.
func (s *Servers) Get(t *testing.T) *redistest.Server {
	redistest.Binary(t) // skips t, not TB, if there is no server
	s.mu.Lock()
	defer s.mu.Unlock()
	var server *redistest.Server
	if last := len(s.idle) - 1; last >= 0 {
		server = s.idle[last]
		s.idle = s.idle[:last]
	} else {
		server = redistest.Real(s.TB)
	}
	server.Do(t, "FLUSHALL")
	t.Cleanup(func() {
		server.Do(t, "FLUSHALL")
		s.mu.Lock()
		defer s.mu.Unlock()
		s.idle = append(s.idle, server)
	})
	return server
}

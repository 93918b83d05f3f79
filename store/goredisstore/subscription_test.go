package goredisstore

import (
	"errors"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// A subscription ends if its connection breaks. It does not go on over another connection, which would hide
// that messages were missed.
func TestSubscriptionEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	s, err := open(t, server.Addr, patience).Subscribe(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := server.Do(t, "CLIENT", "KILL", "TYPE", "pubsub"); got != int64(1) {
		t.Fatalf("%v connections were killed", got)
	}
	for range 3 {
		if m, err := s.Receive(); !errors.Is(err, transport.ErrUnavailable) {
			t.Fatalf("received %q, %v", m, err)
		}
	}
	if n := server.Do(t, "PUBLISH", "mine", "x"); n != int64(0) {
		t.Errorf("%v still listen", n)
	}
}

package lease

import (
	"errors"
	"testing"

	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// A connection to what has become a replica is given up, whoever's pool it is from: the
// next one may lead to the new master.
func TestConnectionToReplicaIsGivenUp(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	pool := s.Pool(t, 4)
	algorithm := Spin{scripting.OverPool(pool, DefaultTimeout)}
	s.Do(t, "REPLICAOF", "127.0.0.1", "1") // nobody is there
	if _, err := algorithm.Take(t.Context(), "k", "token", "", DefaultLease); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	if n := pool.ActiveCount(); n != 0 {
		t.Errorf("%d connections are kept", n)
	}
	s.Do(t, "REPLICAOF", "NO", "ONE")
	if found, err := algorithm.Take(t.Context(), "k", "token", "", DefaultLease); !found.Taken || err != nil {
		t.Errorf("%+v, %v", found, err)
	}
	if n := pool.ActiveCount(); n != 1 {
		t.Errorf("%d connections are open, want 1", n)
	}
}

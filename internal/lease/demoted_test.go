package lease

import (
	"errors"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A connection to what has become a replica is given up, whatever pool made it: the
// next one may lead to the new master.
func TestConnectionToReplicaIsGivenUp(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	pool, dialled := s.Pool(t, 4), 0
	dial := pool.Dial
	pool.Dial = func() (redis.Conn, error) {
		dialled++
		return dial()
	}
	algorithm := Spin{Runner: overPool(pool, DefaultTimeout)}
	s.Do(t, "REPLICAOF", "127.0.0.1", "1") // nobody is there
	if _, err := algorithm.Take(t.Context(), "k", "token", "", DefaultLease); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	s.Do(t, "REPLICAOF", "NO", "ONE")
	if found, err := algorithm.Take(t.Context(), "k", "token", "", DefaultLease); !found.Taken || err != nil {
		t.Errorf("%+v, %v", found, err)
	}
	if dialled != 2 {
		t.Errorf("%d connections were made, want a new one after the refusal", dialled)
	}
}

package goredisstore

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/locksite"
)

// All locks keep the promises of a Locker over go-redis.
func TestLockers(t *testing.T) {
	t.Parallel()
	locksite.Run(t, nil, openRESP2)
}

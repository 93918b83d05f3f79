package rueidisstore

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/storetest"
)

// A store over rueidis keeps its promises.
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, openRESP2)
}

// So do the sessions of users, by the protocol that it speaks by itself.
func TestUsers(t *testing.T) {
	t.Parallel()
	storetest.RunUsers(t, open)
}

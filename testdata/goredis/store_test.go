package goredis

import (
	"testing"

	"github.com/a2139e8d/latchkey/testdata/storetest"
)

// A store over go-redis keeps its promises.
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, openRESP2)
}

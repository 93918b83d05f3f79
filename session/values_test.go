package session_test

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/a2139e8d/latchkey/session"
)

// Whatever is done to a session, a map to which the same is done holds the same.
func TestASessionIsAMap(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var s session.Session
	want := map[string]string{}
	for i := range 1000 {
		key := strconv.Itoa(random.IntN(40))
		switch n := random.IntN(100); {
		case n < 60:
			s.Set(key, i)
			want[key] = strconv.Itoa(i)
		case n < 98:
			s.Delete(key)
			delete(want, key)
		default:
			s.Clear()
			clear(want)
		}
		if got := maps.Collect(indexed(&s)); !maps.Equal(got, want) || s.Len() != len(want) {
			t.Fatalf("seed %d, step %d: the session holds %v, want %v", seed, i, got, want)
		}
		if _, ok := session.Get[int](&s, key); ok != (want[key] != "") {
			t.Fatalf("seed %d, step %d: Get(%s) = %v", seed, i, key, ok)
		}
	}
	s.Set("last", true) // an empty new session would not be stored
	want["last"] = "true"
	if got := maps.Collect(indexed(nextRequest(t, &s))); !maps.Equal(got, want) {
		t.Errorf("seed %d: stored %v, want %v", seed, got, want)
	}
}

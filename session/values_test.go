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
	for name, test := range map[string]struct{ keys, lookEvery int }{
		"few values":  {40, 1},
		"many values": {2000, 500}, // looking sorts them
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testIsAMap(t, test.keys, test.lookEvery)
		})
	}
}

func testIsAMap(t *testing.T, keys, lookEvery int) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var s session.Session
	want := map[string]string{}
	for i := range 25 * keys {
		key := strconv.Itoa(random.IntN(keys))
		switch n := random.IntN(50 * keys); {
		case n < 30*keys:
			s.Set(key, i)
			want[key] = strconv.Itoa(i)
		case n < 50*keys-20:
			s.Delete(key)
			delete(want, key)
		default:
			s.Clear()
			clear(want)
		}
		if s.Len() != len(want) {
			t.Fatalf("seed %d, step %d: the session holds %d values, want %d", seed, i, s.Len(), len(want))
		}
		if i%lookEvery == 0 {
			if got := maps.Collect(indexed(&s)); !maps.Equal(got, want) {
				t.Fatalf("seed %d, step %d: the session holds %v, want %v", seed, i, got, want)
			}
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

// A handler may store the fields of a large form, each under its name, while it holds the
// session's lock.
func BenchmarkManySets(b *testing.B) {
	keys := make([]string, 40_000)
	for i := range keys {
		keys[i] = strconv.Itoa(rand.IntN(1e9))
	}
	for b.Loop() {
		var s session.Session
		for _, key := range keys {
			s.Set(key, 1)
		}
		if _, err := s.Seal("benchmark"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/Set")
}

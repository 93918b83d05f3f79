package session_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

// A hot session is opened with the snapshot of the request before, again and again. Whatever is done
// to it, it holds what a map would hold to which the same was done. Sessions that are opened with
// the same snapshot share nothing that can change: those before stay as they were.
func TestASessionIsAMap(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]int{"few values": 5, "many values": 300} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			random := rand.New(rand.NewPCG(seed, 0))
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			want := map[string]int{}
			var snapshots []*session.Snapshot
			var encoded []string
			config := keep.Config{Data: []byte("{}")}
			for generation := range 500 {
				s := openWith(t, config)
				steps := random.IntN(4)
				if generation%50 == 0 {
					steps = 10 * keys
				}
				for range steps {
					key := strconv.Itoa(random.IntN(keys))
					switch n := random.IntN(500); {
					case n == 0:
						s.Clear()
						clear(want)
					case n < 200:
						s.Delete(key)
						delete(want, key)
					default:
						s.Set(key, generation)
						want[key] = generation
					}
					n, ok := session.Get[int](s, key)
					if m, there := want[key]; n != m || ok != there || s.Len() != len(want) {
						t.Fatalf("generation %d: %s is %d, %v, want %d, %v; %d values, want %d", generation, key, n, ok, m, there, s.Len(), len(want))
					}
				}
				s.Set("last", generation)
				want["last"] = generation
				if got := slices.Collect(s.Keys()); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
					t.Fatalf("generation %d: the keys are %q, want those of %v", generation, got, want)
				}
				change := seal(t, s)
				config = keep.Config{Data: change.Data(), Snapshot: change.Snapshot}
				got := map[string]int{}
				if err := json.Unmarshal(config.Data, &got); err != nil || !maps.Equal(got, want) || change.Snapshot.Size() != len(config.Data) {
					t.Fatalf("generation %d: %s, %v, of size %d, want %v", generation, config.Data, err, change.Snapshot.Size(), want)
				}
				snapshots, encoded = append(snapshots, change.Snapshot), append(encoded, string(config.Data))
			}
			for i, snapshot := range snapshots {
				if got := string(snapshot.AppendTo(nil)); got != encoded[i] {
					t.Fatalf("snapshot %d was %s and is %s", i, encoded[i], got)
				}
			}
		})
	}
}

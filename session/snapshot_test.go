package session

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// Sessions that are opened with the same snapshot share nothing that can change.
func TestASnapshotDoesNotChange(t *testing.T) {
	t.Parallel()
	var first Session
	first.Set("a", 1)
	first.Set("b", 1)
	change, err := first.Seal("test")
	if err != nil {
		t.Fatal(err)
	}
	open := func() *Session {
		s, err := Open(keep.Config{Data: change.Data(), Snapshot: change.Snapshot})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, alter := range map[string]func(*Session){
		"Set of another value": func(s *Session) { s.Set("a", 2) },
		"Set of another key":   func(s *Session) { s.Set("0", 2) },
		"Delete":               func(s *Session) { s.Delete("a") },
		"Clear":                func(s *Session) { s.Clear() },
		"Clear and Set":        func(s *Session) { s.Clear(); s.Set("c", 2) },
	} {
		before := open()
		s := open()
		alter(s)
		again, err := s.Seal("test")
		if err != nil || !again.Changed {
			t.Errorf("%s: changed %v, %v", name, again.Changed, err)
		}
		// The new snapshot is what its bytes say.
		decoded, err := parse(again.Data())
		if err != nil || string(decoded.appendTo(nil)) != string(again.Snapshot.AppendTo(nil)) {
			t.Errorf("%s: the snapshot is not what %s says: %v", name, again.Data(), err)
		}
		for _, s := range []*Session{before, open()} {
			if got := string(s.values.appendTo(nil)); got != `{"a":1,"b":1}` {
				t.Errorf("%s in one session made another %s", name, got)
			}
		}
	}
}

// A hot session is opened with the snapshot of the request before, again and again. Each request
// sees what a map would hold to which the same was done, and the snapshots before stay as they were.
func TestAChainOfSnapshots(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]int{"few values": 5, "many values": 300} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			random := rand.New(rand.NewPCG(seed, 0))
			want := map[string]int{}
			var snapshots []any
			var encoded []string
			data := []byte("{}")
			var snapshot any
			based := 0
			for generation := range 500 {
				s, err := Open(keep.Config{Data: data, Snapshot: snapshot})
				if err != nil {
					t.Fatal(err)
				}
				if random.IntN(200) == 0 {
					s.Clear()
					clear(want)
				}
				for range random.IntN(4) {
					key := strconv.Itoa(random.IntN(keys))
					if random.IntN(3) == 0 {
						s.Delete(key)
						delete(want, key)
					} else {
						s.Set(key, generation)
						want[key] = generation
					}
					n, ok := Get[int](s, key)
					if m, there := want[key]; n != m || ok != there {
						t.Fatalf("seed %d, generation %d: %s is %d, %v, want %d, %v", seed, generation, key, n, ok, m, there)
					}
				}
				s.Set("last", generation)
				want["last"] = generation
				if got := slices.Collect(s.Keys()); s.Len() != len(want) || !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
					t.Fatalf("seed %d, generation %d: %d keys, %q, want %v", seed, generation, s.Len(), got, want)
				}
				change, err := s.Seal("test")
				if err != nil {
					t.Fatal(err)
				}
				data, snapshot = change.Data(), change.Snapshot
				got := map[string]int{}
				if err := json.Unmarshal(data, &got); err != nil || !maps.Equal(got, want) {
					t.Fatalf("seed %d, generation %d: %s, %v, want %v", seed, generation, data, err, want)
				}
				v := change.Snapshot.values
				if size := change.Snapshot.Size(); size != len(data) {
					t.Fatalf("seed %d, generation %d: size %d, but %s has %d", seed, generation, size, data, len(data))
				} else if n := len(v.changes.entries); n*n > 16*len(v.base) {
					t.Fatalf("seed %d, generation %d: %d changes to a base of %d are copied", seed, generation, n, len(v.base))
				} else if n > 0 {
					based++
				}
				snapshots, encoded = append(snapshots, snapshot), append(encoded, string(data))
			}
			for i, snapshot := range snapshots {
				if got := string(snapshot.(*Snapshot).AppendTo(nil)); got != encoded[i] {
					t.Fatalf("seed %d: snapshot %d was %s and is %s", seed, i, encoded[i], got)
				}
			}
			if based < 100 {
				t.Errorf("only %d of the snapshots are a base with changes", based)
			}
		})
	}
}

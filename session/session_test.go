package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/values"
	"github.com/a2139e8d/latchkey/session"
)

// open returns a session over a stored record.
func open(t *testing.T, record string) *session.Session {
	t.Helper()
	return openWith(t, keep.Config{Data: []byte(record)})
}

func tryOpen(c keep.Config) (*session.Session, error) {
	s := new(session.Session)
	return s, keep.Open(s, c)
}

func openWith(t *testing.T, c keep.Config) *session.Session {
	t.Helper()
	s, err := tryOpen(c)
	if err != nil {
		t.Fatalf("Open(%s): %v", c.Data, err)
	}
	return s
}

// closed closes s, as the end of its request does, and returns what is to be done.
func closed(t *testing.T, s *session.Session) keep.Change {
	t.Helper()
	change, err := keep.Close(s, "the test")
	if err != nil {
		t.Fatalf("Close: %v", err)
	}
	return change
}

// nextRequest closes s and returns the session that the visitor's next request
// sees.
func nextRequest(t *testing.T, s *session.Session) *session.Session {
	t.Helper()
	return open(t, string(closed(t, s).Data()))
}

func keys(s *session.Session) []string { return slices.Collect(s.Keys()) }

func TestTheZeroSessionIsEmptyNewAndUsable(t *testing.T) {
	t.Parallel()
	var s session.Session
	if s.Len() != 0 || len(keys(&s)) != 0 || s.ID() != "" || !s.IsNew() || !s.Expires().IsZero() {
		t.Errorf("Len %d, Keys %v, ID %q, IsNew %v, Expires %v", s.Len(), keys(&s), s.ID(), s.IsNew(), s.Expires())
	}
	s.Delete("absent")
	s.Clear()
	s.Set("a", 1)
	if a, ok := session.Get[int](&s, "a"); !ok || a != 1 || !s.IsNew() {
		t.Errorf("Get = %d, %v, IsNew %v", a, ok, s.IsNew())
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Errorf("Commit: %v", err)
	}
}

func TestKeysAreThoseAtTheTimeOfTheCall(t *testing.T) {
	t.Parallel()
	s := open(t, `{"a":1,"b":2}`)
	all := s.Keys()
	for key := range all {
		s.Delete(key) // neither deadlocks nor confuses the loop
		s.Set("new "+key, 0)
	}
	if got := slices.Collect(all); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("an iterator made before the changes yields %q", got)
	}
	if got := keys(s); !slices.Equal(got, []string{"new a", "new b"}) {
		t.Errorf("Keys = %q", got)
	}
}

func TestCommitWithoutAStoreClosesAndStillTellsOfAFailedSet(t *testing.T) {
	t.Parallel()
	var s session.Session
	s.Set("nan", math.NaN())
	for range 2 { // the second Commit returns what the first one did
		if err := s.Commit(t.Context()); err == nil {
			t.Error("Commit = nil after a Set that failed")
		}
	}
	s.Set("late", 1)
	if s.Len() != 0 {
		t.Error("a Set after the Commit went through")
	}
}

// A keeper is a keep.Keeper of functions. A function that is nil must not be called, except late.
type keeper struct {
	reopen func(context.Context) error
	late   func(method, key, closedBy string)
}

var _ keep.Keeper = keeper{}

func (k keeper) SessionID() string                       { return "" }
func (k keeper) CommitSession(context.Context) error     { return nil }
func (k keeper) ReopenSession(ctx context.Context) error { return k.reopen(ctx) }
func (k keeper) TouchSession(context.Context) error      { return session.ErrEnded }

func (k keeper) ChangedLate(method, key, closedBy string) {
	if k.late != nil {
		k.late(method, key, closedBy)
	}
}

// Touch asks the keeper. A session that is kept nowhere has no timeout.
func TestTouch(t *testing.T) {
	t.Parallel()
	if err := new(session.Session).Touch(t.Context()); err != nil {
		t.Errorf("Touch of a session that is kept nowhere: %v", err)
	}
	s := new(session.Session)
	if err := keep.Open(s, keep.Config{Keeper: keeper{}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Touch(t.Context()); err != session.ErrEnded {
		t.Errorf("Touch: %v", err)
	}
}

func (k keeper) SessionExpires(keep.Change) time.Time { return time.Time{} }

// A hot session is opened again and again, with the snapshot of the request before. Whatever is done to it, it holds
// what a map would hold after the same calls. Sessions that are opened with the same snapshot share nothing that can
// change: earlier ones stay as they were.
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
			var snapshots []*values.Snapshot
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
				change := closed(t, s)
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

// ownCopy checks that changing one Get's value changes neither the next one's nor what
// is stored.
func ownCopy[T any](v T, spoil func(T)) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		var s session.Session
		s.Set("key", v)
		first, ok := session.Get[T](&s, "key")
		if !ok {
			t.Fatal("Get = false")
		}
		spoil(first)
		if second, _ := session.Get[T](&s, "key"); !reflect.DeepEqual(second, v) {
			t.Errorf("the second Get = %v, want %v", second, v)
		}
		if stored, _ := session.Get[T](nextRequest(t, &s), "key"); !reflect.DeepEqual(stored, v) {
			t.Errorf("stored %v, want %v", stored, v)
		}
	}
}

func TestEveryGetReturnsAFreshCopy(t *testing.T) {
	t.Parallel()
	t.Run("slice", ownCopy([]int{1, 2, 3}, func(v []int) { v[0] = 9; slices.Reverse(v) }))
	t.Run("bytes", ownCopy([]byte("abc"), func(v []byte) { clear(v) }))
	t.Run("map", ownCopy(map[string]int{"a": 1}, func(v map[string]int) { v["a"], v["b"] = 2, 3 }))
	t.Run("pointer", ownCopy(&address{City: "London"}, func(v *address) { v.City = "Paris" }))
	t.Run("nested", ownCopy(person{Home: &address{Lines: []string{"a"}}}, func(v person) { v.Home.Lines[0] = "b" }))
	t.Run("any", ownCopy[any]([]any{"a"}, func(v any) { v.([]any)[0] = "b" }))
	t.Run("raw JSON", ownCopy(json.RawMessage(`[1,2]`), func(v json.RawMessage) { copy(v, "{{{{") }))
}

func TestWhatASessionWasGivenMayChangeLater(t *testing.T) {
	t.Parallel()
	data := []byte(`{"a":"before"}`)
	s := openWith(t, keep.Config{Data: data})
	clear(data)
	list, raw := []string{"a"}, json.RawMessage(`"a"`)
	s.Set("list", list)
	s.Set("raw", raw)
	list[0] = "b"
	copy(raw, `"b"`)
	if got := string(closed(t, s).Data()); got != `{"a":"before","list":["a"],"raw":"a"}` {
		t.Errorf("stored %s", got)
	}
}

func TestPopShowsAFlashMessageOnce(t *testing.T) {
	t.Parallel()
	s := open(t, `{"flash":"saved"}`)
	if got, ok := session.Pop[int](s, "flash"); ok || got != 0 { // which is of another type
		t.Errorf("Pop of another type = %d, %v", got, ok)
	}
	if got, ok := session.Pop[string](s, "flash"); !ok || got != "saved" {
		t.Errorf("the first Pop = %q, %v", got, ok)
	}
	if got, ok := session.Pop[string](s, "flash"); ok || got != "" {
		t.Errorf("the second Pop = %q, %v", got, ok)
	}
	if change := closed(t, s); !change.Changed || string(change.Data()) != "{}" {
		t.Errorf("Close = %+v, want the record without the message", change)
	}
}

// BenchmarkVisit measures what the package costs a request that reads and writes one of its session's five values.
func BenchmarkVisit(b *testing.B) {
	data := []byte(`{"cart":{"items":[4711,815],"coin":"EUR"},"csrf":"Xq8yGmB1Zr0uVt5wN3kD7cJ2hS9fLp4A",` +
		`"name":"Ada Lovelace","user":"8c3f0f2e-5f0a-4d8e-9a36-0d2a6a3f7b11","visits":1000}`)
	b.ReportAllocs()
	for b.Loop() {
		s, err := tryOpen(keep.Config{Data: data})
		if err != nil {
			b.Fatal(err)
		}
		visits, _ := session.Get[int](s, "visits")
		s.Set("visits", visits+1)
		if change, err := keep.Close(s, "test"); err != nil || !change.Changed {
			b.Fatal(change, err)
		}
	}
}

// BenchmarkFill is one request that fills its session, in no order.
func BenchmarkFill(b *testing.B) {
	for _, n := range []int{5, 5000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var s session.Session
				for i := range n {
					s.Set(strconv.Itoa(i*7919%n), i)
				}
			}
		})
	}
}

func TestGoroutinesOfOneRequestMayShareItsSession(t *testing.T) {
	t.Parallel()
	const workers, rounds = 4, 100
	var s session.Session
	s.Set("shared", []int{0, 0})
	var wg sync.WaitGroup
	each := func(do func(i int)) {
		wg.Go(func() {
			for i := range rounds {
				do(i)
			}
		})
	}
	for w := range workers {
		own := fmt.Sprint("own", w)
		each(func(i int) {
			s.Set(own, i)
			s.Set("shared", []int{w, i})
			s.Set(own+"gone", i)
			if got, ok := session.Pop[int](&s, own+"gone"); !ok || got != i {
				t.Errorf("Pop(%s) = %d, %v, want %d", own+"gone", got, ok, i)
			}
			if got, ok := session.Get[int](&s, own); !ok || got != i {
				t.Errorf("Get(%s) = %d, %v, want %d", own, got, ok, i)
			}
		})
	}
	// Each reader calls one method only: nothing else orders it after a writer.
	each(func(int) {
		if got, ok := session.Get[[]int](&s, "shared"); !ok || len(got) != 2 {
			t.Errorf("Get = %v, %v", got, ok)
		}
	})
	each(func(int) {
		if got := keys(&s); !slices.IsSorted(got) || !slices.Contains(got, "shared") {
			t.Errorf("Keys = %q", got)
		}
	})
	each(func(int) { s.Len() })
	wg.Wait()
	if s.Len() != 1+workers {
		t.Errorf("the keys are %q", keys(&s))
	}
}

// However a Set and the Close race, the value is either stored or reported.
func TestASetThatRacesTheCloseIsNeverLostInSilence(t *testing.T) {
	t.Parallel()
	const workers, rounds = 8, 50
	var mu sync.Mutex
	late := map[string]bool{}
	s := openWith(t, keep.Config{Keeper: keeper{late: func(_, key, _ string) {
		mu.Lock()
		defer mu.Unlock()
		late[key] = true
	}}})
	var wg sync.WaitGroup
	half := make(chan struct{}) // closed when the first worker is half way
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				if w == 0 && i == rounds/2 {
					close(half)
				}
				s.Set(fmt.Sprint(w, "-", i), i)
			}
		})
	}
	<-half
	change := closed(t, s)
	wg.Wait()

	stored := open(t, string(change.Data()))
	for key := range stored.Keys() {
		if late[key] {
			t.Errorf("%s is both stored and reported as late", key)
		}
	}
	if got := stored.Len() + len(late); got != workers*rounds {
		t.Errorf("%d stored + %d late = %d of %d", stored.Len(), len(late), got, workers*rounds)
	}
}

package session_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

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
	if got := string(seal(t, s).Data()); got != `{"a":"before","list":["a"],"raw":"a"}` {
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
	if change := seal(t, s); !change.Changed || string(change.Data()) != "{}" {
		t.Errorf("Seal = %+v, want the record without the message", change)
	}
}

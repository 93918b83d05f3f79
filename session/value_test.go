package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

type address struct {
	City  string
	Lines []string
}

type person struct {
	Name    string
	Age     uint8
	Home    *address
	Numbers map[string]int64
	Extra   map[string]any `json:"extra,omitempty"`
}

// comesBack checks that Get returns what Set took, in this request and the next.
func comesBack[T any](v T) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		var s session.Session
		s.Set("key", v)
		for _, s := range []*session.Session{&s, nextRequest(t, &s)} {
			if got, ok := session.Get[T](s, "key"); !ok || !reflect.DeepEqual(got, v) {
				t.Errorf("Get = %#v, %v, want %#v", got, ok, v)
			}
		}
	}
}

func TestWhatIsSetComesBackExactly(t *testing.T) {
	t.Parallel()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	t.Run("bool", comesBack(true))
	t.Run("least int64", comesBack(int64(math.MinInt64)))
	t.Run("greatest int64", comesBack(int64(math.MaxInt64)))
	t.Run("greatest uint64", comesBack(uint64(math.MaxUint64)))
	t.Run("an int64 that no float64 holds", comesBack(int64(1<<53+1)))
	t.Run("greatest float64", comesBack(math.MaxFloat64))
	t.Run("least float64", comesBack(math.SmallestNonzeroFloat64))
	t.Run("a third", comesBack(1.0/3))
	t.Run("big integer", comesBack(new(big.Int).Lsh(big.NewInt(1), 200)))
	t.Run("duration", comesBack(90*time.Minute+time.Nanosecond))
	t.Run("empty text", comesBack(""))
	t.Run("text of all kinds", comesBack("<a href='x'>&amp;</a> \x00\x1f\u007f\n\u2028\u2029 \" \\ \\ufffd \ufffd 😀 é e\u0301"))
	t.Run("bytes", comesBack(every))
	t.Run("nil slice", comesBack([]string(nil)))
	t.Run("empty slice", comesBack([]string{}))
	t.Run("array", comesBack([2][]int{{1}, {2, 3}}))
	t.Run("map with integer keys", comesBack(map[int64]string{math.MinInt64: "least"}))
	t.Run("nil pointer", comesBack((*person)(nil)))
	t.Run("nil any", comesBack[any](nil))
	t.Run("nested structs", comesBack(person{
		Name:    "Ada",
		Age:     255,
		Home:    &address{City: "London", Lines: []string{"12", "St James's Square"}},
		Numbers: map[string]int64{"least": math.MinInt64, "greatest": math.MaxInt64},
		Extra:   map[string]any{"n": json.Number("9223372036854775807"), "list": []any{nil, true, "x"}},
	}))
	t.Run("any", comesBack[any](map[string]any{"n": json.Number("18446744073709551615"), "f": json.Number("1.50")}))
	t.Run("list of any", comesBack([]any{json.Number("-9223372036854775808"), "text", false, nil}))
	t.Run("map of any", comesBack(map[string]any{"id": json.Number("9007199254740993")}))
	t.Run("pointer to any", comesBack(&map[string]any{"id": json.Number("9007199254740993")}))
}

func TestTimesKeepTheirNanosecondAndTheirZonesOffset(t *testing.T) {
	t.Parallel()
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("", 5*3600+45*60), time.FixedZone("", -12*3600)} {
		want := time.Date(2024, time.February, 29, 23, 59, 59, 123456789, zone)
		var s session.Session
		s.Set("at", want)
		got, ok := session.Get[time.Time](nextRequest(t, &s), "at")
		_, offset := got.Zone()
		_, wantOffset := want.Zone()
		if !ok || !got.Equal(want) || offset != wantOffset || got.Nanosecond() != want.Nanosecond() {
			t.Errorf("Get = %v, %v, want %v", got, ok, want)
		}
	}
}

// isType checks that the value of key does not fit a T, and that Get then
// returns nothing of it.
func isType[T any](key string) func(*testing.T, *session.Session) {
	return func(t *testing.T, s *session.Session) {
		t.Helper()
		got, ok := session.Get[T](s, key)
		if zero := reflect.New(reflect.TypeFor[T]()).Elem(); ok || !reflect.DeepEqual(got, zero.Interface()) {
			t.Errorf("Get[%T](%s) = %v, %v, want the zero value and false", got, key, got, ok)
		}
		var v T
		if err := s.Decode(key, &v); !errors.Is(err, session.ErrType) || errors.Is(err, session.ErrAbsent) || !strings.Contains(err.Error(), key) {
			t.Errorf("Decode(%s) into a %T: %v, want ErrType", key, v, err)
		}
	}
}

func TestAValueThatDoesNotFitIsFalseAndErrType(t *testing.T) {
	t.Parallel()
	s := open(t, `{
		"text": "7", "number": 7, "negative": -1, "fraction": 1.5, "big": 256, "huge": 18446744073709551616,
		"huger": 1e999, "list": [1,2], "half": {"Name":"Ada","Age":256}, "yes": true, "none": null, "base64": "%"
	}`)
	for name, check := range map[string]func(*testing.T, *session.Session){
		"text as int":             isType[int]("text"),
		"number as text":          isType[string]("number"),
		"number as bool":          isType[bool]("number"),
		"negative as unsigned":    isType[uint]("negative"),
		"fraction as int":         isType[int64]("fraction"),
		"overflow of uint8":       isType[uint8]("big"),
		"overflow of uint64":      isType[uint64]("huge"),
		"overflow of float64":     isType[float64]("huger"),
		"list as map":             isType[map[string]int]("list"),
		"list of another type":    isType[[]string]("list"),
		"bool as list":            isType[[]bool]("yes"),
		"struct, half filled":     isType[person]("half"),
		"number as time":          isType[time.Time]("number"),
		"text that is not base64": isType[[]byte]("base64"),
		"null as int":             isType[int]("none"),
		"null as text":            isType[string]("none"),
		"null as bool":            isType[bool]("none"),
		"null as struct":          isType[person]("none"),
		"null as array":           isType[[2]int]("none"),
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); check(t, s) })
	}
}

// nullFits checks that Get reads a null as want.
func nullFits[T any](want T) func(*testing.T) {
	return func(t *testing.T) {
		if v, ok := session.Get[T](open(t, `{"none": null}`), "none"); !ok || !reflect.DeepEqual(v, want) {
			t.Errorf("Get = %#v, %v", v, ok)
		}
	}
}

func TestANullFitsWhatCanBeNilOrDecodesItself(t *testing.T) {
	t.Parallel()
	t.Run("pointer", nullFits[*int](nil))
	t.Run("slice", nullFits[[]int](nil))
	t.Run("map", nullFits[map[string]int](nil))
	t.Run("any", nullFits[any](nil))
	t.Run("time", nullFits(time.Time{}))
	t.Run("raw JSON", nullFits(json.RawMessage("null")))
}

func TestAnAbsentKeyIsFalseAndErrAbsent(t *testing.T) {
	t.Parallel()
	s := open(t, `{"a":1}`)
	if v, ok := session.Get[int](s, "b"); ok || v != 0 {
		t.Errorf("Get = %d, %v", v, ok)
	}
	v := 7
	err := s.Decode("b", &v)
	if !errors.Is(err, session.ErrAbsent) || errors.Is(err, session.ErrType) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("Decode: %v, want ErrAbsent, with the key", err)
	}
	if v != 7 {
		t.Errorf("Decode of an absent key altered its target: %d", v)
	}
	if err := s.Decode("a", &v); err != nil || v != 1 {
		t.Errorf("Decode = %d, %v", v, err)
	}
	for _, target := range []any{nil, 0, (*int)(nil), map[string]int{}} {
		if err := s.Decode("a", target); !errors.Is(err, session.ErrType) {
			t.Errorf("Decode into %#v: %v, want ErrType", target, err)
		}
	}
}

func TestAStructMayLoseAndGainFieldsWhileOldSessionsAreAround(t *testing.T) {
	t.Parallel()
	s := open(t, `{"user":{"Name":"Ada","Title":"Countess"}}`)
	type newer struct {
		Name  string
		Admin bool
	}
	if got, ok := session.Get[newer](s, "user"); !ok || got != (newer{Name: "Ada"}) {
		t.Errorf("Get = %+v, %v", got, ok)
	}
}

// A key may have any size. Errors name no more of it than fits a line.
func TestErrorsCutALongKey(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("k\n", 1<<16)
	set, readOnly := open(t, "{}"), openWith(t, keep.Config{Data: []byte("{}"), ReadOnly: true})
	set.Set(key, make(chan int))
	readOnly.Set(key, 1)
	_, setting := keep.Close(set, "the test")
	_, reading := keep.Close(readOnly, "the test")
	full := open(t, "{}")
	full.Set(key, "text")
	quoted, _ := json.Marshal(key)
	_, opening := tryOpen(keep.Config{Data: fmt.Appendf(nil, "{%s:1,%s:2}", quoted, quoted)})
	var n int
	for what, err := range map[string]error{
		"Set": setting, "Set of what is read only": reading, "Decode": set.Decode(key, &n), "Decode of another type": full.Decode(key, &n),
		"Open": opening,
	} {
		if err == nil || len(err.Error()) > 500 {
			t.Errorf("%s: %.200v", what, err)
		}
	}
}

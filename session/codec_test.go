package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

// indexed yields each key of s with the bytes of its value.
func indexed(s *session.Session) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for key := range s.Keys() {
			raw, _ := session.Get[json.RawMessage](s, key)
			if !yield(key, string(raw)) {
				return
			}
		}
	}
}

// oddValues are valid JSON that encoding/json would write otherwise.
var oddValues = map[string]string{
	"spacing":      "{ \"a\" :\t[ 1 ,\r\n2 ] , \"b\":{ } }",
	"escapes":      `"\u0041\u00e9\/\ud83d\ude00\u003c"`,
	"half":         `"\ud800"`,
	"exponent":     `[1E400,-0.0e+7,1.50,100000000000000000000000000000001]`,
	"html":         `"<script>&'</script>"`,
	"twice":        `{"a":1,"a":2}`,
	"brackets":     `["}","]","\"}",{"{":"\\"},[[]]]`,
	"replacement":  `"\ufffd"`,
	"null":         `null`,
	"long literal": `"` + strings.Repeat(`\\`, 5000) + `"`,
}

func TestUntouchedValuesSurviveByteForByte(t *testing.T) {
	t.Parallel()
	for name, value := range oddValues {
		for _, spaced := range []string{`{"odd":` + value + `,"n":1}`, "{ \"n\" : 1 ,\n\"odd\"\t: " + value + " }\n"} {
			s := open(t, spaced)
			session.Get[any](s, "odd") // to read a value does not alter it
			session.Get[string](s, "odd")
			session.Get[map[string]any](s, "odd")
			s.Set("n", 2)
			if got, want := string(seal(t, s).Data()), `{"n":2,"odd":`+value+`}`; got != want {
				t.Errorf("%s: stored\n%s, want\n%s", name, got, want)
			}
		}
	}
}

func TestEqualSessionsAreEqualBytes(t *testing.T) {
	t.Parallel()
	var a, b session.Session
	a.Set("x", map[string]int{"one": 1, "two": 2})
	a.Set("<y>", "é & \"quotes\"")
	b.Set("<y>", "é & \"quotes\"")
	b.Set("gone", true)
	b.Set("x", map[string]int{"two": 2, "one": 1})
	b.Delete("gone")
	want := `{"<y>":"é & \"quotes\"","x":{"one":1,"two":2}}`
	if got := string(seal(t, &a).Data()); got != want {
		t.Errorf("a is %s, want %s", got, want)
	}
	if got := string(seal(t, &b).Data()); got != want {
		t.Errorf("b is %s, want %s", got, want)
	}
}

// What encoding/json would take, and a session does not. See FuzzOpen for what neither does.
func TestOpenRefusesWhatIsNotARecordWithoutAnySession(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]string{
		"nothing":                         "",
		"null":                            "null",
		"leading space":                   " {}",
		"a key that is not UTF-8":         "{\"\xff\":1}",
		"a value that is not UTF-8":       "{\"a\":\"\xff\"}",
		"a key with half a character":     `{"\ud800":1}`,
		"one half and one real character": "{\"\ufffd\\udc00\":1}",
		"a key twice":                     `{"a":1,"b":2,"a":3}`,
		"a key twice, written otherwise":  `{"a":1,"\u0061":2}`,
		"the empty key twice":             `{"":1,"":1}`,
	} {
		s, err := session.Open(keep.Config{Data: []byte(record)})
		if err == nil {
			t.Errorf("%s: opened %.100q with the keys %q", name, record, keys(s))
		} else if !strings.HasPrefix(err.Error(), "session: stored data") {
			t.Errorf("%s: the error does not say where it is from: %v", name, err)
		}
	}
}

func TestNoDataIsANewSessionAndAnEmptyObjectIsNot(t *testing.T) {
	t.Parallel()
	if s := openWith(t, keep.Config{}); !s.IsNew() || s.Len() != 0 {
		t.Error("Open without data is not a new, empty session")
	}
	if s := open(t, "{ }"); s.IsNew() || s.Len() != 0 {
		t.Error("Open of an empty record is not an old, empty session")
	}
}

// FuzzOpen: no stored bytes make Open panic, and what it accepts it understands
// as encoding/json does, and gives back byte for byte.
func FuzzOpen(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a":-0}`, `{"a":01}`, `{"a":1.5}`, `{"a":1 }`, `{"a": 1}`, `{"a":1,}`, `{"a":1}x`, `{"a":1`, `{"a"`, `{"a":`, `{`,
		`{"a":"text","b":[1,{"c":"]"}],"c":null}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"a":"\u0041"}`, `{"\u0041":1}`, "{\"a\":\"\x01\"}",
		"{\"a\":\"\x7f\"}", "{\"a\":\"\xff\"}", "{\"\xff\":1}", `{"a":"é"}`, `{"é":1}`, `{"a":"\"}`, `{"a":"\\"}`, `{"a":}`, `{"a":[}`, `{"a":]}`, `{"a":"12345678\"}`,
		`{"a":["\ud800"]}`, `{"a":tru}`, `{"a":true false}`, `{"a":[1] ,"b":2}`, `{"a":{"b":1}:2}`, `{"\ud800":1,"\ufffd":2}`,
		"[]", "\xef\xbb\xbf{}", "\x0d\x7f\x04\x01\x02\xff\x80", `{"a":"b`, `{"a":1}{"b":2}`, `{"a":1 "b":2}`, `{"a" 1}`, `{a:1}`, `{1:1}`,
		`{"a":"\x"}`, "{\"a\":\"\n\"}", `{"a":[}]}`, "{\"\xed\xa0\x80\":1}",
		`{"a":1,"b":"text","c":[true,null],"d":{"e":1.5e300}}`, `{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
	} {
		f.Add([]byte(seed))
	}
	for _, value := range oddValues {
		f.Add([]byte(`{ "odd" : ` + value + ` , "n":1}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := session.Open(keep.Config{Data: append([]byte{}, data...)})
		if err != nil {
			return
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(data, &object); err != nil {
			t.Fatalf("opened what is no JSON object: %v", err)
		}
		if !utf8.Valid(data) || s.Len() != len(object) {
			t.Fatalf("opened what is not UTF-8, or has a key twice: %d keys, want %d", s.Len(), len(object))
		}
		want := map[string]string{}
		for key, raw := range object {
			want[key] = string(raw)
		}
		if got := maps.Collect(indexed(s)); !maps.Equal(got, want) {
			t.Fatalf("opened as %q, want %q", got, want)
		}
		for key := range want {
			session.Get[any](s, key)
			session.Get[int64](s, key)
			session.Get[string](s, key)
			session.Get[person](s, key)
		}

		s.Renew() // so that the record is written though nothing changed
		stored := seal(t, s).Data()
		next := open(t, string(stored))
		if got := maps.Collect(indexed(next)); !maps.Equal(got, want) {
			t.Fatalf("came back as %q, want %q", got, want)
		}
		next.Renew()
		if again := seal(t, next).Data(); string(again) != string(stored) {
			t.Fatalf("stored as %q, then as %q", stored, again)
		}
	})
}

// Each byte at each place of a text is judged as it is alone, whatever its neighbours are.
func TestEachByteAtEachPlaceOfAText(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for _, size := range []int{1, 7, 8, 9, 17} { // around the words of the processor
			for at := range size {
				for _, other := range []byte(" \x7f[]a") {
					text := bytes.Repeat([]byte{other}, size)
					text[at] = byte(c)
					record := []byte(`{"a":"` + string(text) + `"}`)
					_, err := session.Open(keep.Config{Data: record})
					if want := json.Valid(record) && utf8.Valid(record); (err == nil) != want {
						t.Fatalf("%q: %v", record, err)
					}
				}
			}
		}
	}
}

// The same as string, int, int64 and bool, but for these there is no short way.
type (
	text     string
	number   int
	number64 int64
	truth    bool
)

// FuzzSetScalar: the short way to encode a value gives what the long one gives.
func FuzzSetScalar(f *testing.F) {
	for _, s := range []string{
		"", "plain", `"`, `\`, "\x00", "\x1f", " ", "\x7f", "é", "<a href='x'>&amp;</a>", "\u2027", "\u2028", "\u2029", "\u202a",
		"{", "},:", "\n", "\ufffc", "\ufffd", "\ufffe", "😀", "\xff", "a\xc3", "\xed\xa0\x80", `\ufffd`, "\ufffd\xff",
	} {
		f.Add(s, int64(len(s)), true)
	}
	for _, n := range []int64{0, -1, 9, 99, 100, -100, math.MinInt64, math.MaxInt64} {
		f.Add("", n, false)
	}
	f.Fuzz(func(t *testing.T, s string, n int64, b bool) {
		encodesAs(t, s, text(s))
		encodesAs(t, int(n), number(n))
		encodesAs(t, n, number64(n))
		encodesAs(t, b, truth(b))
		keyEncodesAs(t, s)
	})
}

// encodesAs checks that two values come out of Set as the same bytes, or as the
// same error.
func encodesAs(t *testing.T, short, long any) {
	t.Helper()
	var a, b session.Session
	a.Set("v", short)
	b.Set("v", long)
	got, gotErr := a.Seal("the test")
	want, wantErr := b.Seal("the test")
	if string(got.Data()) != string(want.Data()) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
		t.Errorf("%#v is %s, %v; want %s, %v", short, got.Data(), gotErr, want.Data(), wantErr)
	}
}

// keyEncodesAs checks that a key is written as the same text is as a value.
func keyEncodesAs(t *testing.T, key string) {
	t.Helper()
	var s session.Session
	s.Set(key, text(key))
	change, err := s.Seal("the test")
	inner := strings.TrimSuffix(strings.TrimPrefix(string(change.Data()), "{"), "}")
	if half := len(inner) / 2; (err == nil) != utf8.ValidString(key) || err == nil && inner[:half] != inner[half+1:] {
		t.Errorf("key %q: %s, %v", key, change.Data(), err)
	}
}

// FuzzGetScalar: the short way to decode a value gives what the long one gives.
func FuzzGetScalar(f *testing.F) {
	for _, raw := range []string{
		`""`, `"plain"`, `"7"`, `"\""`, `"\ud800"`, `"\ufffd"`, "\"\ufffd\"", `"é"`, `"true"`, `"null"`,
		`0`, `-0`, `7`, `-7`, `7.0`, `7e0`, `7E+0`, `0.5`, `1e400`,
		`9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`,
		`true`, `false`, `null`, `[]`, `[7]`, `{}`, `{"a":"b"}`, `["a","b"]`,
	} {
		f.Add(raw)
	}
	for _, value := range oddValues {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		s, err := session.Open(keep.Config{Data: []byte(`{"v":` + raw + `}`)})
		if err != nil || s.Len() != 1 {
			return
		}
		decodesAs(t, s, func(v text) string { return string(v) })
		decodesAs(t, s, func(v number) int { return int(v) })
		decodesAs(t, s, func(v number64) int64 { return int64(v) })
		decodesAs(t, s, func(v truth) bool { return bool(v) })
	})
}

// decodesAs checks that Get finds the same in a Short, in a Long and by way of
// Decode, which knows no short way.
func decodesAs[Short comparable, Long any](t *testing.T, s *session.Session, short func(Long) Short) {
	t.Helper()
	got, ok := session.Get[Short](s, "v")
	want, wantOK := session.Get[Long](s, "v")
	if got != short(want) || ok != wantOK {
		raw, _ := session.Get[json.RawMessage](s, "v")
		t.Errorf("%s as a %T: %v, %v; want %v, %v", raw, got, got, ok, want, wantOK)
	}
	var decoded Short
	if err := s.Decode("v", &decoded); (err == nil) != ok || ok && decoded != got {
		t.Errorf("Get = %v, %v, but Decode = %v, %v", got, ok, decoded, err)
	}
}

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
	t.Run("an int that no float64 holds", comesBack(1<<53+1))
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

// nullFits checks that a null is what T has for it.
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

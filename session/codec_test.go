package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"strings"
	"testing"
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

func TestOpenRefusesWhatIsNotARecordWithoutAnySession(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]string{
		"nothing":                         "",
		"a list":                          "[]",
		"null":                            "null",
		"a byte order mark":               "\xef\xbb\xbf{}",
		"leading space":                   " {}",
		"another format":                  "\x0d\x7f\x04\x01\x02\xff\x80",
		"cut off":                         `{"a":1`,
		"cut off in a text":               `{"a":"b`,
		"two objects":                     `{"a":1}{"b":2}`,
		"rubbish at the end":              `{"a":1}x`,
		"a comma too many":                `{"a":1,}`,
		"a comma too few":                 `{"a":1 "b":2}`,
		"no colon":                        `{"a" 1}`,
		"no value":                        `{"a":}`,
		"a key without quotes":            `{a:1}`,
		"a number as key":                 `{1:1}`,
		"a wrong number":                  `{"a":01}`,
		"a wrong escape":                  `{"a":"\x"}`,
		"a bare line end":                 "{\"a\":\"\n\"}",
		"a wrong bracket":                 `{"a":[}]`,
		"a key that is not UTF-8":         "{\"\xff\":1}",
		"a value that is not UTF-8":       "{\"a\":\"\xff\"}",
		"a UTF-8 surrogate":               "{\"\xed\xa0\x80\":1}",
		"a key with half a character":     `{"\ud800":1}`,
		"one half and one real character": "{\"\ufffd\\udc00\":1}",
		"a key twice":                     `{"a":1,"b":2,"a":3}`,
		"a key twice, written otherwise":  `{"a":1,"\u0061":2}`,
		"the empty key twice":             `{"":1,"":1}`,
		"too deep":                        `{"a":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `}`,
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

package session_test

import (
	"encoding/json"
	"iter"
	"maps"
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
			if got, want := string(closed(t, s).Data()), `{"n":2,"odd":`+value+`}`; got != want {
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
	if got := string(closed(t, &a).Data()); got != want {
		t.Errorf("a is %s, want %s", got, want)
	}
	if got := string(closed(t, &b).Data()); got != want {
		t.Errorf("b is %s, want %s", got, want)
	}
}

// A session refuses these records, of which encoding/json would take most. FuzzOpen tries what both refuse.
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
		s, err := tryOpen(keep.Config{Data: []byte(record)})
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

// FuzzOpen: No stored bytes make Open panic. Open decodes what it accepts as encoding/json does, and gives it back
// byte for byte.
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
		s, err := tryOpen(keep.Config{Data: append([]byte{}, data...)})
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
		stored := closed(t, s).Data()
		next := open(t, string(stored))
		if got := maps.Collect(indexed(next)); !maps.Equal(got, want) {
			t.Fatalf("came back as %q, want %q", got, want)
		}
		next.Renew()
		if again := closed(t, next).Data(); string(again) != string(stored) {
			t.Fatalf("stored as %q, then as %q", stored, again)
		}
	})
}

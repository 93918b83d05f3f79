package session_test

import (
	"encoding/json"
	"iter"
	"maps"
	"strings"
	"testing"

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

func TestAnyTextThatIsUTF8IsAKey(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	var s session.Session
	for _, key := range []string{"", " ", `"`, `\`, `\"`, "{", "},:", "\x00", "\n", "\u2028", "😀", "\ufffd", `\ufffd`, "a\\u0041"} {
		s.Set(key, key+"!")
		want[key] = key + "!"
	}
	got := map[string]string{}
	next := nextRequest(t, &s)
	for key := range next.Keys() {
		got[key], _ = session.Get[string](next, key)
	}
	if !maps.Equal(got, want) {
		t.Errorf("came back as %q, want %q", got, want)
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

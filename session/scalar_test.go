package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

// Each byte at each place of a text is judged alone, whatever its neighbours are.
func TestEachByteAtEachPlaceOfAText(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for _, size := range []int{1, 7, 8, 9, 17} { // around the size of the processor's words
			for at := range size {
				for _, other := range []byte(" \x7f[]a") {
					text := bytes.Repeat([]byte{other}, size)
					text[at] = byte(c)
					record := []byte(`{"a":"` + string(text) + `"}`)
					_, err := tryOpen(keep.Config{Data: record})
					if want := json.Valid(record) && utf8.Valid(record); (err == nil) != want {
						t.Fatalf("%q: %v", record, err)
					}
				}
			}
		}
	}
}

// These are like string, int, int64 and bool, but there is no short way for them.
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
	got, gotErr := keep.Close(&a, "the test")
	want, wantErr := keep.Close(&b, "the test")
	if string(got.Data()) != string(want.Data()) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
		t.Errorf("%#v is %s, %v; want %s, %v", short, got.Data(), gotErr, want.Data(), wantErr)
	}
}

// keyEncodesAs checks that a text is written in the same way as a key and as a value.
func keyEncodesAs(t *testing.T, key string) {
	t.Helper()
	var s session.Session
	s.Set(key, text(key))
	change, err := keep.Close(&s, "the test")
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
		s, err := tryOpen(keep.Config{Data: []byte(`{"v":` + raw + `}`)})
		if err != nil || s.Len() != 1 {
			return
		}
		decodesAs(t, s, func(v text) string { return string(v) })
		decodesAs(t, s, func(v number) int { return int(v) })
		decodesAs(t, s, func(v number64) int64 { return int64(v) })
		decodesAs(t, s, func(v truth) bool { return bool(v) })
	})
}

// decodesAs checks that Get finds the same in a Short and in a Long, and the same as Decode, which knows no short
// way.
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

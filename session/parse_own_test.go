package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The short way is taken by what a session of ordinary values is stored as.
func TestOrdinaryRecordsAreParsedTheShortWay(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]any{
		"nothing":        {},
		"texts":          {"", "ann", strings.Repeat("x", 1000)},
		"integers":       {0, 1, -1, 1 << 60},
		"other scalars":  {true, nil, 1.5, 1e300},
		"text of others": {"Grüße", "日本", `"quoted"`, `C:\dir`, "two\nlines"},
		"nested values":  {[]int{1, 2}, map[string]any{"a": map[string]any{"b": "}"}}, struct{}{}},
	} {
		var s Session
		for i, v := range values {
			s.Set(fmt.Sprint("key", i), v)
		}
		data := s.values.appendTo(nil)
		found, ok := parseOwn(data)
		if !ok || !slices.Equal(found, slices.Collect(s.values.each)) {
			t.Errorf("%s: %s is parsed as %q, %v", name, data, found, ok)
		}
	}
}

// oneLevelTooDeep is what encoding/json refuses as a part of a record only.
var oneLevelTooDeep = `{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`

// FuzzParseOwn: what the short way accepts the long way accepts, as the same.
func FuzzParseOwn(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a":-0}`, `{"a":01}`, `{"a":1.5}`, `{"a":1 }`, `{"a": 1}`, `{"a":1,}`, `{"a":1}x`, `{"a":1`, `{"a"`, `{"a":`, `{`,
		`{"a":"text","b":[1,{"c":"]"}],"c":null}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"a":"\u0041"}`, `{"\u0041":1}`, "{\"a\":\"\x01\"}",
		"{\"a\":\"\x7f\"}", "{\"a\":\"\xff\"}", "{\"\xff\":1}", `{"a":"é"}`, `{"é":1}`, `{"a":"\"}`, `{"a":"\\"}`, `{"a":}`, `{"a":[}`, `{"a":]}`, `{"a":"12345678\"}`,
		`{"a":["\ud800"]}`, `{"a":tru}`, `{"a":true false}`, `{"a":[1] ,"b":2}`, `{"a":{"b":1}:2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Add([]byte(oneLevelTooDeep))
	f.Fuzz(func(t *testing.T, data []byte) {
		short, ok := parseOwn(data)
		if !ok {
			return
		}
		long, err := parseAny(data)
		if err != nil || !slices.Equal(short, long) {
			t.Fatalf("%q: the short way says %q, the long way %q, %v", data, short, long, err)
		}
	})
}

// Each byte at each place of a word is judged as it is alone.
func TestPlainASCII(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		want := c >= ' ' && c < 0x80 && c != '\\'
		for size := 1; size <= 17; size++ {
			for at := range size {
				for _, other := range []byte(" \x7f[]a") { // neighbours of what is looked for
					b := []byte(strings.Repeat(string(rune(other)), size))
					b[at] = byte(c)
					if got := plainASCII(b); got != want {
						t.Fatalf("%q: %v, want %v", b, got, want)
					}
				}
			}
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, size := range []int{100, 10_000, 200_000} {
		data := []byte(`{"n":1,"text":"` + strings.Repeat("x", size) + `","user":"ann"}`)
		for name, parse := range map[string]func([]byte) bool{
			"own": func(b []byte) bool { _, ok := parseOwn(b); return ok },
			"any": func(b []byte) bool { _, err := parseAny(b); return err == nil },
		} {
			b.Run(fmt.Sprint(name, " ", size), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if !parse(data) {
						b.Fatal("refused")
					}
				}
			})
		}
	}
}

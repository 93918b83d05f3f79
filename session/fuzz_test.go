package session_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

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

package session_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

// FuzzOpen: no stored bytes make Open panic, and what it accepts it understands
// as encoding/json does, and gives back byte for byte.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"a":1,"b":"text","c":[true,null],"d":{"e":1.5e300}}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Add([]byte("{\"\xff\":1}"))
	f.Add([]byte(`{"\ud800":1,"\ufffd":2}`))
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

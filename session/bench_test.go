package session_test

import (
	"fmt"
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

// twentyKeys is a session of an ordinary size, as it is stored.
func twentyKeys(b *testing.B) []byte {
	b.Helper()
	var s session.Session
	for i := range 20 {
		s.Set(fmt.Sprintf("key%02d", i), map[string]any{"id": i, "name": "somebody"})
	}
	s.Set("key00", 42)
	change, err := s.Seal("test")
	if err != nil {
		b.Fatal(err)
	}
	return change.Data()
}

// BenchmarkRequest is what the package costs a request that writes one key.
func BenchmarkRequest(b *testing.B) {
	data := twentyKeys(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		s, err := session.Open(keep.Config{Data: data})
		if err != nil {
			b.Fatal(err)
		}
		s.Set("key01", "changed")
		if _, err := s.Seal("test"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVisit is the same for a session of five values, of which one is read
// and written.
func BenchmarkVisit(b *testing.B) {
	data := []byte(`{"cart":{"items":[4711,815],"coin":"EUR"},"csrf":"Xq8yGmB1Zr0uVt5wN3kD7cJ2hS9fLp4A",` +
		`"name":"Ada Lovelace","user":"8c3f0f2e-5f0a-4d8e-9a36-0d2a6a3f7b11","visits":1000}`)
	b.ReportAllocs()
	for b.Loop() {
		s, err := session.Open(keep.Config{Data: data})
		if err != nil {
			b.Fatal(err)
		}
		visits, _ := session.Get[int](s, "visits")
		s.Set("visits", visits+1)
		if change, err := s.Seal("test"); err != nil || !change.Changed {
			b.Fatal(change, err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	s, err := session.Open(keep.Config{Data: twentyKeys(b)})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if n, ok := session.Get[int](s, "key00"); !ok || n != 42 {
			b.Fatal(n, ok)
		}
	}
}

package session_test

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

// BenchmarkVisit is what the package costs a request to a session of five values, of which one is
// read and written.
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

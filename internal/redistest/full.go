package redistest

import (
	"strconv"
	"strings"
	"testing"
)

// Fill fills the memory of a real server that evicts nothing, until Empty.
func (s *Server) Fill(tb testing.TB) {
	tb.Helper()
	limit := s.used(tb) + 4<<20
	s.Do(tb, "CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", limit)
	c := s.admin.Get()
	defer c.Close()
	for n := 0; ; n++ {
		_, err := c.Do("SET", "filler"+strconv.Itoa(n), strings.Repeat("x", 10_000))
		if err != nil && strings.HasPrefix(err.Error(), "OOM ") {
			// Connections use memory and free it again. The server must stay full whatever they do.
			s.Do(tb, "CONFIG", "SET", "maxmemory", limit-2<<20)
			return
		}
		if err != nil {
			tb.Fatalf("redistest: filling: %v", err)
		}
	}
}

// Empty removes what Fill has stored, and lifts the limit on the memory of the server.
func (s *Server) Empty(tb testing.TB) {
	tb.Helper()
	s.Do(tb, "CONFIG", "SET", "maxmemory", 0)
	for n := 0; s.Do(tb, "DEL", "filler"+strconv.Itoa(n)) == int64(1); n++ {
	}
}

// used returns how much memory the server uses, in bytes.
func (s *Server) used(tb testing.TB) int {
	tb.Helper()
	_, rest, _ := strings.Cut(text(tb, s, "INFO", "memory"), "used_memory:")
	digits, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(digits)
	if err != nil {
		tb.Fatalf("redistest: how much memory is used? %v", err)
	}
	return n
}

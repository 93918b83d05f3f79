package faults

import (
	"io"
	"net"
	"strings"
	"time"
)

// ask sends a command to Redis on a new connection. It returns in how many pieces the
// reply comes, which has the given number of bytes, and how long that takes.
func (s *scene) ask(addr, command string, bytes int) (pieces int, took time.Duration) {
	s.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	begun := time.Now()
	if _, err := io.WriteString(conn, command); err != nil {
		s.Fatal(err)
	}
	for b := make([]byte, bytes); bytes > 0; pieces++ {
		n, err := conn.Read(b)
		if err != nil {
			s.Fatal(err)
		}
		bytes -= n
	}
	return pieces, time.Since(begun)
}

// ping returns how long Redis takes to answer.
func (s *scene) ping(addr string) time.Duration {
	s.Helper()
	_, took := s.ask(addr, "PING\r\n", len("+PONG\r\n"))
	return took
}

// pieces returns in how many pieces a reply of a hundred bytes comes.
func (s *scene) pieces(addr string) int {
	s.Helper()
	n, _ := s.ask(addr, "ECHO "+strings.Repeat("x", 100)+"\r\n", 100)
	return n
}

// pull returns how long a reply of many bytes takes.
func (s *scene) pull(addr string, bytes int) time.Duration {
	s.Helper()
	s.redis.Do(s.T, "SET", "probe", strings.Repeat("x", bytes))
	defer s.redis.Do(s.T, "DEL", "probe")
	_, took := s.ask(addr, "GET probe\r\n", bytes)
	return took
}

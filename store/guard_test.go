package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

// A liar replies the same to every command, once on each connection.
func liar(t *testing.T, says string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				if _, err := c.Read(make([]byte, 1)); err == nil {
					_, _ = io.WriteString(c, says)
					_, _ = io.Copy(io.Discard, c) // until the other side closes
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return "redis://" + l.Addr().String()
}

// A reply that announces an absurd length breaks the connection. It costs no memory, and the client does not wait
// for data that never comes.
func TestAbsurdLengthsBreakTheConnection(t *testing.T) { // not in parallel, since it measures memory
	for name, says := range map[string]string{
		"an array":              "*100000000\r\n",
		"an array of arrays":    strings.Repeat("*1000000\r\n", 100),
		"a nest":                strings.Repeat("*1\r\n", 1_000_000),
		"a string":              "$1000000000\r\n",
		"a string in an array":  "*2\r\n+OK\r\n$1000000000\r\n",
		"more than a number":    "*99999999999999999999999999\r\n",
		"the largest numbers":   "*9223372036854775807\r\n",
		"what overflows to two": "*18446744073709551618\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(liar(t, says), Options{Timeout: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err = s.Ping(t.Context())
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), errAbsurd.Error()) {
				t.Errorf("the error is %v", err)
			}
			if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; taken > 100 {
				t.Errorf("the reply has taken %d MB", taken)
			}
		})
	}
}

// Replies that Redis really sends pass the guard, however the network cuts them, and whatever their strings
// contain.
func TestTheGuardLetsRepliesPass(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("*9999999999\r\n", 1000)
	stream := strings.Repeat("+OK\r\n-ERR $9999999999\r\n:-1\r\n$-1\r\n*-1\r\n$0\r\n\r\n*0\r\n"+
		"*3\r\n$13\r\n*9999999999\r\n\r\n*2\r\n:9999999999999999\r\n*-1\r\n$-1\r\n"+
		fmt.Sprintf("$%d\r\n%s\r\n", len(large), large)+
		fmt.Sprintf("*%d\r\n%s", maxElements/10, strings.Repeat(":1\r\n", maxElements/10)), 2)
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "in halves": iotest.HalfReader, "in bytes": iotest.OneByteReader,
	} {
		got, err := io.ReadAll(bufio.NewReader(&guard{Conn: reading{Reader: cut(strings.NewReader(stream))}}))
		if err != nil || string(got) != stream {
			t.Errorf("%s: %d of %d bytes, %v", name, len(got), len(stream), err)
		}
	}
}

// A reading is a connection that reads from a Reader.
type reading struct {
	net.Conn
	io.Reader
}

func (r reading) Read(p []byte) (int, error) { return r.Reader.Read(p) }

// BenchmarkGuard measures what the guard adds to the replies of an exclusive request.
func BenchmarkGuard(b *testing.B) {
	record := strings.Repeat("x", 300)
	replies := []byte(fmt.Sprintf("*3\r\n$%d\r\n%s\r\n$-1\r\n$60\r\n%s\r\n:1\r\n+OK\r\n", len(record), record, record[:60]))
	g := &guard{}
	for b.Loop() {
		if !g.sees(replies) {
			b.Fatal("the replies do not pass the guard")
		}
	}
}

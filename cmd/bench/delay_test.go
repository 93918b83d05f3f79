package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestDelayer sends commands one after another, which wait for each other's
// replies, and many at once, which do not.
func TestDelayer(t *testing.T) {
	server := started(t)
	const roundTrip = 20 * time.Millisecond
	d, err := startDelayer(t.Context(), server.addr, roundTrip)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	conn, err := net.Dial("tcp", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)

	// ping sends n commands at once, and returns how long their replies took.
	ping := func(n, size int) time.Duration {
		argument := strings.Repeat("x", size)
		began := time.Now()
		for range n {
			if _, err := fmt.Fprintf(conn, "ECHO %s\r\n", argument); err != nil {
				t.Fatal(err)
			}
		}
		want := fmt.Appendf(nil, "$%d\r\n%s\r\n", size, argument)
		got := make([]byte, len(want))
		for range n {
			if _, err := io.ReadFull(reader, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("the reply is %.40q..., error %v: it must be %.40q...", got, err, want)
			}
		}
		return time.Since(began)
	}
	for range 3 {
		if took := ping(1, 10); took < roundTrip {
			t.Errorf("a round trip took %v: it must be at least %v", took, roundTrip)
		}
	}
	// One after another they would take 10 s.
	if took := ping(500, 40_000); took < roundTrip || took > 400*roundTrip {
		t.Errorf("500 replies of 40 KB took %v: they must not wait for each other", took)
	}

	d.close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
}

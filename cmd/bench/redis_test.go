package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
	"github.com/redis/go-redis/v9"
)

// TestMemoryWaits makes sure that no client's buffers count.
func TestMemoryWaits(t *testing.T) {
	server := started(t)
	client := redis.NewClient(&redis.Options{Addr: server.addr})
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if bytes, err := server.memory(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a client connected: %d bytes, error %v", bytes, err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if bytes, err := server.memory(t.Context()); bytes == 0 || err != nil {
		t.Errorf("with none: %d bytes, error %v", bytes, err)
	}
}

// TestMeasureMemory makes fewer sessions than the program does.
func TestMeasureMemory(t *testing.T) {
	server := started(t)
	c, err := parseFlags(strings.Fields("-workload memory"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	c.workloads[0].sessions = 1000
	all := newReport(c, server.version)
	if err := all.measure(t.Context(), server, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	r := all.results[0]
	for _, name := range []string{app.Latchkey, app.SCS} {
		o := r.find(name)
		if o == nil || o.err != nil || len(o.samples) != 1 {
			t.Fatalf("%s: %+v", name, o)
		}
		// The values have 100 bytes, and Redis needs about as many for any key.
		if bytes := o.samples[0].memory; bytes < 200 || bytes > 600 {
			t.Errorf("%s takes %v bytes for a session", name, bytes)
		}
	}
	if len(r.peers) != 2 {
		t.Errorf("%d peers: it must be 2", len(r.peers))
	}
}

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

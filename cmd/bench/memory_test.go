package main

import (
	"context"
	"errors"
	"io"
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

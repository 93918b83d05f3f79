package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Each layout is measured under each load, and its requests reach all of its nodes: at once, or, on a busy
// machine, with more time.
func TestMeasure(t *testing.T) {
	redistest.Binary(t) // or it is skipped, and a test of cmd/bench says so
	for span := 20 * time.Millisecond; ; span *= 4 {
		layouts, err := measure(t.Context(), 1, span)
		if err != nil {
			t.Fatal(err)
		}
		if rows, want := strings.Count(table(layouts), "\n")-2, len(layouts)*len(loads); rows != want {
			t.Errorf("the table has %d rows, want %d", rows, want)
		}
		wrong := doubtful(layouts)
		if wrong == "" {
			return
		}
		if span > 4*time.Second {
			t.Fatal(wrong)
		}
	}
}

// A measurement that is interrupted, or cannot start its servers, leaves no server and no directory behind.
func TestMeasureLeavesNothing(t *testing.T) {
	redistest.Binary(t) // or it is skipped, and a test of cmd/bench says so
	for _, tt := range []struct {
		name, server string // empty: the usual server
	}{{"interrupted", ""}, {"no server", "no-such-server"}} {
		t.Run(tt.name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			if tt.server != "" {
				t.Setenv("REDIS_SERVER", tt.server)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if layouts, err := measure(ctx, 1, time.Hour); err == nil {
				t.Fatalf("%d layouts were measured: there must be an error", len(layouts))
			}
			left, err := os.ReadDir(temporary) // a server's directory is removed after the end of the server
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, error %v", left, err)
			}
		})
	}
}

// doubtful returns the figures of the samples that cannot be right.
func doubtful(layouts []*layout) (wrong string) {
	for _, l := range layouts {
		if len(l.nodes) != max(l.masters, 1) {
			wrong += fmt.Sprintf("%s: %d nodes\n", l.title, len(l.nodes))
		}
		for clients, all := range l.samples {
			if s := all[0]; s.rate <= 0 || s.cpu <= 0 || s.reads <= 0 || s.conns < 1 || s.most >= 1.9 && l.masters > 1 {
				wrong += fmt.Sprintf("%s, %d clients: %+v\n", l.title, clients, s)
			}
		}
	}
	return wrong
}

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Each layout is measured under each load, and its requests reach all of its nodes.
func TestMeasure(t *testing.T) {
	redistest.Binary(t) // or it is skipped, and a test of cmd/bench says so
	layouts, err := measure(t.Context(), 1, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if rows, want := strings.Count(table(layouts), "\n")-2, len(layouts)*len(loads); rows != want {
		t.Errorf("the table has %d rows, want %d", rows, want)
	}
	for _, l := range layouts {
		if len(l.nodes) != max(l.masters, 1) {
			t.Errorf("%s: %d nodes", l.title, len(l.nodes))
		}
		for clients, all := range l.samples {
			if s := all[0]; s.rate <= 0 || s.cpu <= 0 || s.reads <= 0 || s.conns < 1 || s.most >= 1.9 && l.masters > 1 {
				t.Errorf("%s, %d clients: %+v", l.title, clients, s)
			}
		}
	}
}

package main

import (
	"fmt"
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

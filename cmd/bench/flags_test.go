package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		args   string
		rounds int // 0: an error is expected
	}{
		{"", usualRounds},
		{"-rounds 7", 7},
		{"-against dir", againstRounds},
		{"-against dir -rounds 7 -workload 200KB -processes 4", 7},
		{"-rounds 0", 0},
		{"-workload hot,page -peer latchkey,scs -processes 1,2 -rounds 7 -delay 1ms -chart file -markdown file", 7},
		{"-workload other", 0},
		{"-workload page -chart file", 0}, // the chart shows hot
		{"-peer latchkey,other", 0},
		{"-processes 0", 0},
		{"-processes many", 0},
		{"-limit 0s", 0},
		{"-delay -1ms", 0},
		{"-against dir -peer scs", 0},
		{"-against dir -limit 1s", 0},
		{"argument", 0},
	} {
		c, err := parseFlags(strings.Fields(tt.args), io.Discard)
		if (err != nil) != (tt.rounds == 0) || err == nil && c.rounds != tt.rounds {
			t.Errorf("%q: %d rounds, error %v: it must be %d, 0 for an error", tt.args, c.rounds, err, tt.rounds)
		}
	}
}

// -workload, -peer, -processes and -delay choose what is measured. The workloads keep their usual order.
func TestChoice(t *testing.T) {
	c, err := parseFlags(strings.Fields("-workload page,hot -peer scs -processes 4 -delay 5ms"), io.Discard)
	if err != nil || len(c.workloads) != 2 || len(c.contenders) != 1 {
		t.Fatalf("%+v, error %v", c, err)
	}
	if w := c.workloads[0]; w.name != "hot" || !slices.Equal(w.processes, []int{4}) || w.delay != 5*time.Millisecond {
		t.Errorf("first comes %s, with %v processes and a delay of %v", w.name, w.processes, w.delay)
	}
	if c.workloads[1].name != "page" || c.contenders[0].Name != app.SCS {
		t.Errorf("then %s; the peer is %s", c.workloads[1].name, c.contenders[0].Name)
	}
}

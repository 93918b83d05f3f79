package main

import (
	"io"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		args   string
		rounds int // 0: it is an error
	}{
		{"", workloadRounds},
		{"-rounds 7", 7},
		{"-experiment", experimentRounds},
		{"-experiment -rounds 7 -lock timestamp -hold 0s", 7},
		{"-rounds 0", 0},
		{"-experiment -rounds 0", 0},
		{"-experiment -lock other", 0},
		{"-experiment -hold -1ms", 0},
		{"-experiment -workload hot", 0},
		{"-experiment -plots dir", 0},
		{"-workload hot,page -peer latchkey,scs -processes 1,2 -rounds 7 -plots dir -markdown file", 7},
		{"-workload other", 0},
		{"-peer latchkey,other", 0},
		{"-processes 0", 0},
		{"-processes many", 0},
		{"-limit 0s", 0},
		{"-svg file", 0},
		{"argument", 0},
	} {
		c, err := parseFlags(strings.Fields(tt.args), io.Discard)
		if (err != nil) != (tt.rounds == 0) || err == nil && c.rounds != tt.rounds {
			t.Errorf("%q: %d rounds, error %v: it must be %d, 0 for an error", tt.args, c.rounds, err, tt.rounds)
		}
	}
}

func TestChoice(t *testing.T) {
	c, err := parseFlags(strings.Fields("-workload page,hot -peer scs -processes 4"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.workloads) != 2 || c.workloads[0].name != "hot" || c.workloads[1].name != "page" {
		t.Errorf("the workloads are %v", c.workloads)
	}
	if len(c.peers) != 1 || c.peers[0].Name != app.SCS {
		t.Errorf("the peers are %v", c.peers)
	}
	if n := c.processesOf(c.workloads[0]); len(n) != 1 || n[0] != 4 {
		t.Errorf("the processes are %v", n)
	}
	all, err := parseFlags(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.workloads) != len(workloads()) || len(all.peers) != len(app.Peers()) {
		t.Errorf("%d workloads and %d peers: it must be all", len(all.workloads), len(all.peers))
	}
}

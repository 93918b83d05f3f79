package main

import (
	"io"
	"strings"
	"testing"
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
		{"-workload other", 0},
		{"-svg file", 0},
		{"argument", 0},
	} {
		c, err := parseFlags(strings.Fields(tt.args), io.Discard)
		if (err != nil) != (tt.rounds == 0) || err == nil && c.rounds != tt.rounds {
			t.Errorf("%q: %d rounds, error %v: it must be %d, 0 for an error", tt.args, c.rounds, err, tt.rounds)
		}
	}
}

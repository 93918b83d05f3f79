package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Help fits the smallest screen, needs no Redis, and knows all commands and flags.
func TestHelp(t *testing.T) {
	t.Parallel()
	asked := [][]string{{"--help"}, {"-h"}, {"help"}}
	for _, c := range commands {
		asked = append(asked, []string{c.name, "--help"}, []string{c.name, first, "-h"})
		contains(t, help, "latchkey "+c.name)
		for _, name := range c.flags {
			contains(t, c.help(), "  --"+name)
			if len("--"+name) == idLength {
				t.Errorf("--%s could be an id", name)
			}
		}
	}
	for _, args := range asked {
		text := must(t, "redis://127.0.0.1:1", args...)
		if lines := strings.Count(text, "\n"); lines > 24 || lines < 5 {
			t.Errorf("%q has %d lines", args, lines)
		}
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%q has a line of %d columns: %s", args, n, line)
			}
		}
	}
	for _, name := range []string{"redis", "password-file", "keys-file", "prefix", "timeout", "json"} {
		contains(t, help, "--"+name)
	}
}

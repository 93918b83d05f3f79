package rig

import (
	"os/exec"
	"testing"
)

// CLI runs redis-cli, or valkey-cli, with some arguments, and returns what it prints.
func CLI(tb testing.TB, args ...string) string {
	tb.Helper()
	for _, name := range []string{"redis-cli", "valkey-cli"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(tb.Context(), path, args...).CombinedOutput()
		if err != nil {
			tb.Fatalf("%s %q: %v\n%s", name, args, err, out[max(0, len(out)-2000):])
		}
		return string(out)
	}
	tb.Fatal("neither redis-cli nor valkey-cli is installed: `make setup` does it")
	return ""
}

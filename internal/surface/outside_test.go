package surface

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program of another module can use all names that are part of the design, and needs no internal package.
func TestAProgramOfAnotherModule(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name, from string, change func(string) string) {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(change(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	same := func(text string) string { return text }
	put("main.go", "testdata/outside/main.go", same)
	put("go.sum", filepath.Join(root, "go.sum"), same)
	put("go.mod", filepath.Join(root, "go.mod"), func(text string) string {
		const path = "github.com/a2139e8d/latchkey"
		return strings.Replace(text, "module "+path, "module example.com/outside", 1) +
			"\nrequire " + path + " v0.0.0\n\nreplace " + path + " => " + root + "\n"
	})
	run := exec.CommandContext(t.Context(), "go", "run", "-mod=mod", ".")
	run.Dir = dir
	run.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS=")
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

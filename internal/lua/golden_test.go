package lua_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/a2139e8d/latchkey/internal/lua"
)

var update = flag.Bool("update", false, "write what Redis runs")

// The files that the library embeds are made from the sources. The test reads all files from the disk, not from
// the build: a library that is broken on purpose, with -overlay, must be found by its behaviour.
func TestWhatRedisRunsIsMadeOfTheSources(t *testing.T) {
	t.Parallel()
	parts := map[string]string{}
	for _, file := range sources(t, ".") {
		parts[lua.Name(file)] = read(t, file)
	}
	for _, dir := range lua.Dirs {
		dir = filepath.Join("../..", dir)
		golden := filepath.Join(dir, "golden")
		known := map[string]bool{}
		for _, file := range sources(t, dir) {
			text, err := lua.Whole(read(t, file), parts)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			at := filepath.Join(golden, filepath.Base(file))
			known[at] = true
			if *update {
				if err := os.WriteFile(at, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			} else if read(t, at) != text {
				t.Errorf("%s was not made from its present source: run go test ./internal/lua -update", at)
			}
		}
		for _, at := range sources(t, golden) {
			if !known[at] {
				t.Errorf("%s has no source", at)
			}
		}
	}
}

// It is an error if a script includes an unknown part.
func TestAnUnknownPartIsAnError(t *testing.T) {
	t.Parallel()
	for _, script := range []string{`{{template "unknown"}}`, `{{template "queue"`} {
		if text, err := lua.Whole(script, lua.Parts()); err == nil {
			t.Errorf("%s becomes %s", script, text)
		}
	}
}

func sources(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.lua"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no scripts in %s: %v", dir, err)
	}
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package middleware_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The code in the README is compiled: all of it stands in an Example or in the
// quickstart, to the letter.
func TestReadmeCodeIsCompiled(t *testing.T) {
	t.Parallel()
	readme := read(t, "../README.md")
	compiled := read(t, "example_test.go") + read(t, "../locker/example_test.go") + read(t, "../testdata/quickstart/main.go")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(blocks) < 4 {
		t.Fatalf("found %d blocks of Go", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(compiled, block[1]) {
			t.Errorf("this stands in the README only:\n%s", block[1])
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

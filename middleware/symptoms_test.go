package middleware

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page of symptoms explains each kind of log line.
func TestSymptomsHaveEachKind(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../store/SYMPTOMS.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{"other": true}
	for _, r := range rules {
		kinds[r.kind] = true
	}
	for _, kind := range kindsLogged(t) {
		kinds[kind] = true
	}
	if len(kinds) < 20 {
		t.Fatalf("these kinds were found: %v", kinds)
	}
	list, _, _ := strings.Cut(string(page), "\n## ")
	for kind := range kinds {
		if kind != "again" && !strings.Contains(list, "`"+kind+"`") { // again is for those who debug
			t.Errorf("the list of kinds in store/SYMPTOMS.md lacks %s", kind)
		}
	}
}

// kindsLogged returns the kinds in calls of log, logLine and warn.
func kindsLogged(t *testing.T) (kinds []string) {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range regexp.MustCompile(`(?:slog\.Level\w+, |\.warn\()"(\w+)", `).FindAllSubmatch(text, -1) {
			if !strings.HasSuffix(path, "_test.go") {
				kinds = append(kinds, string(call[1]))
			}
		}
	}
	return kinds
}

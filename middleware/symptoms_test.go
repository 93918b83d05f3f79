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
	page := readFile(t, "../store/SYMPTOMS.md")
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

// The rows about a wrong set-up have the log's words, and each begins with the kind.
func TestSymptomsHaveTheWordsOfWarnings(t *testing.T) {
	t.Parallel()
	page, code := string(readFile(t, "../store/SYMPTOMS.md")), readFile(t, "setup.go")
	calls := regexp.MustCompile(`\.warn\("(\w+)", \w+, "([^"]+)"`).FindAllSubmatch(code, -1)
	if len(calls) < 4 {
		t.Fatalf("setup.go warns like this: %q", calls)
	}
	for _, call := range calls {
		row := regexp.MustCompile("<a id=\"" + string(call[1]) + "\"></a>`" + string(call[1]) + "` \\| `([^`]+)` \\|").FindStringSubmatch(page)
		if row == nil || !strings.HasPrefix(string(call[2]), row[1]) {
			t.Errorf("the log says %q, the row of %s in store/SYMPTOMS.md %q", call[2], call[1], row)
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
		text := readFile(t, path)
		for _, call := range regexp.MustCompile(`(?:slog\.Level\w+, |\.warn\()"(\w+)", `).FindAllSubmatch(text, -1) {
			if !strings.HasSuffix(path, "_test.go") {
				kinds = append(kinds, string(call[1]))
			}
		}
	}
	return kinds
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The rows of store/SYMPTOMS.md that doctor names exist.
func TestDoctorNamesSymptoms(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "store", "SYMPTOMS.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range regexp.MustCompile(`SYMPTOMS\.md#([\w-]+)`).FindAllStringSubmatch(string(text), -1) {
			named++
			if !strings.Contains(string(page), `<a id="`+row[1]+`"></a>`) {
				t.Errorf("%s names %s, which is not there", path, row[1])
			}
		}
	}
	if named < 4 {
		t.Errorf("doctor names %d rows", named)
	}
}

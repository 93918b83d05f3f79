package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// After setVersion all modules require that version, also the modules of tests alone, and the workspace still works.
func TestSetVersion(t *testing.T) {
	t.Parallel()
	work, err := os.ReadFile("../../go.work")
	if err != nil {
		t.Fatal(err)
	}
	before, err := modfile.ParseWork("go.work", work, nil)
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	put(t, filepath.Join(copied, "go.work"), work)
	for _, use := range before.Use {
		mod, err := os.ReadFile(filepath.Join("../..", use.Path, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(copied, use.Path, "go.mod"), mod)
	}

	changed, err := setVersion(copied, "v1.9.9")
	if err != nil || !slices.Contains(changed, "go.work") || !slices.Contains(changed, "internal/faults/go.mod") {
		t.Fatalf("changed %q, %v", changed, err)
	}
	for _, use := range before.Use {
		_, ours, err := requirements(copied, use.Path)
		for path, version := range ours {
			if version != "v1.9.9" {
				t.Errorf("%s requires %s %s", use.Path, path, version)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(copied, "go.work"))
	if err != nil {
		t.Fatal(err)
	}
	after, err := modfile.ParseWork("go.work", text, nil)
	if err != nil || len(after.Replace) != len(before.Replace) || strings.Count(string(text), " v1.9.9 => ") != len(before.Replace) {
		t.Errorf("%v:\n%s", err, text)
	}
	if again, err := setVersion(copied, "v1.9.9"); err != nil || len(again) > 0 {
		t.Errorf("setting it again changes %q, %v", again, err)
	}
}

func put(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

package main

import (
	"archive/zip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/module"
)

// Each module has its own files, and no others.
func TestWhatTheProxyServes(t *testing.T) {
	t.Parallel()
	proxy := t.TempDir()
	if err := writeProxy(proxy, "../..", "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range published {
		zipped, err := zip.OpenReader(filepath.Join(proxy, filepath.FromSlash(pathOf(dir)), "@v", "v1.2.3.zip"))
		if err != nil {
			t.Fatal(err)
		}
		defer zipped.Close()
		var names []string
		for _, f := range zipped.File {
			name, ok := strings.CutPrefix(f.Name, pathOf(dir)+"@v1.2.3/")
			if !ok {
				t.Errorf("%s has %s", dir, f.Name)
			}
			names = append(names, name)
		}
		for _, name := range []string{"go.mod", "LICENSE"} { // without a licence pkg.go.dev shows nothing
			if !slices.Contains(names, name) {
				t.Errorf("%s has no %s", dir, name)
			}
		}
		for _, other := range append(slices.Clone(published[1:]), "bin", ".git", "cmd/bench", "internal/browser") {
			if other != dir && slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, other+"/") }) {
				t.Errorf("%s has files of %s", dir, other)
			}
		}
	}
}

// The modules are tagged in an order in which each finds what it requires.
func TestModulesRequireOnlyWhatIsTaggedBefore(t *testing.T) {
	t.Parallel()
	version, err := required("../..")
	if err != nil {
		t.Fatal(err)
	}
	tagged := map[string]bool{}
	for _, dir := range published {
		_, ours, err := requirements("../..", dir)
		if err != nil {
			t.Fatal(err)
		}
		for path, at := range ours {
			if !tagged[path] || at != version {
				t.Errorf("%s requires %s %s: it must come before, as %s", dir, path, at, version)
			}
		}
		tagged[pathOf(dir)] = true
		if err := module.Check(pathOf(dir), version); err != nil {
			t.Error(err)
		}
	}
}

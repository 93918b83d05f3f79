package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// root is the path of Latchkey's own module. The paths of the others begin with it.
const root = "github.com/a2139e8d/latchkey"

// published are the directories of the modules that users get. Each module requires only modules before it, so
// this is also the order in which they are tagged.
var published = []string{".", "middleware/otel", "store/goredisstore", "store/rueidisstore", "cmd/latchkey"}

// pathOf returns the path of the module in a directory of the repository.
func pathOf(dir string) string { return strings.TrimSuffix(root+"/"+filepath.ToSlash(dir), "/.") }

// tagOf returns the tag that makes the go command find a module's version.
func tagOf(dir, version string) string {
	if dir == "." {
		return version
	}
	return filepath.ToSlash(dir) + "/" + version
}

// requirements parses the go.mod of a module, and returns its text and which of our modules it requires.
func requirements(repository, dir string) (text []byte, ours map[string]string, err error) {
	name := filepath.Join(repository, dir, "go.mod")
	text, err = os.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, nil, err
	}
	ours = make(map[string]string)
	for _, r := range file.Require {
		if r.Mod.Path == root || strings.HasPrefix(r.Mod.Path, root+"/") {
			ours[r.Mod.Path] = r.Mod.Version
		}
	}
	return text, ours, nil
}

// required returns the version at which the modules of a repository require each other, which is the newest
// release, or the next one if that is not tagged yet.
func required(repository string) (string, error) {
	_, ours, err := requirements(repository, published[len(published)-1])
	if err == nil && ours[root] == "" {
		err = fmt.Errorf("%s does not require %s", published[len(published)-1], root)
	}
	return ours[root], err
}

package model

import (
	"fmt"
	"path"
	"path/filepath"

	"github.com/a2139e8d/latchkey/internal/overlay"
)

// Scripts has the library's scripts as Redis runs them, by the file of their source below its root, such
// as "internal/records/take.lua".
type Scripts map[string]string

// files has the script of each kind.
var files = [kinds]string{
	take:     "internal/records/take.lua",
	commit:   "internal/records/commit.lua",
	giveBack: "internal/lease/release.lua",
	quit:     "internal/lease/quit.lua",
	save:     "internal/records/optimistic.lua",
}

// Read reads the scripts of the library whose source is in root, or as the overlay has them if there is
// one.
func Read(root string) (Scripts, error) {
	s := Scripts{}
	for _, dir := range []string{"internal/lease", "internal/records"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "golden", "*.lua"))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			text, err := overlay.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading a script: %w", err)
			}
			s[path.Join(dir, filepath.Base(file))] = string(text)
		}
	}
	return s, nil
}

package model

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/a2139e8d/latchkey/internal/overlay"
)

// Scripts are the texts of the library's scripts, by the name of their file below its
// root: "store/take.lua".
type Scripts map[string]string

// includes are what scripts include, by a line that says so.
var includes = []string{"internal/lease/queue.lua", "internal/lease/set.lua", "store/record.lua", "store/times.lua"}

// files are the scripts of the kinds.
var files = [kinds]string{
	take:     "store/take.lua",
	commit:   "store/commit.lua",
	giveBack: "internal/lease/release.lua",
	quit:     "internal/lease/quit.lua",
	save:     "store/optimistic.lua",
}

// Read reads the scripts of the library whose source is in root, as the overlay has them if there is one.
func Read(root string) (Scripts, error) {
	s := Scripts{}
	for _, name := range append(files[:], includes...) {
		text, err := overlay.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, fmt.Errorf("reading a script: %w", err)
		}
		s[name] = string(text)
	}
	return s, nil
}

// whole returns a script with what it includes, as lease.NewScript and newScript of
// package store put it together.
func (s Scripts) whole(file string) string {
	text := s[file]
	for _, name := range includes {
		text = strings.Replace(text, "-- include "+path.Base(name)+"\n", s[name], 1)
	}
	return text
}

package model

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/a2139e8d/latchkey/internal/overlay"
)

// Scripts are the texts of the library's scripts, by the name of their file below its
// root: "internal/records/take.lua".
type Scripts map[string]string

// files are the scripts of the kinds.
var files = [kinds]string{
	take:     "internal/records/take.lua",
	commit:   "internal/records/commit.lua",
	giveBack: "internal/lease/release.lua",
	quit:     "internal/lease/quit.lua",
	save:     "internal/records/optimistic.lua",
}

// Read reads the scripts of the library whose source is in root, as the overlay has them if there is one.
func Read(root string) (Scripts, error) {
	s := Scripts{}
	for _, dir := range []string{"internal/lease", "internal/records"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.lua"))
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

var include = regexp.MustCompile(`(?m)^-- include (\w+\.lua)\n`)

// Whole returns a script with what it includes, as lease.NewScript and newScript of
// package store put it together.
func (s Scripts) Whole(file string) string {
	return include.ReplaceAllStringFunc(s[file], func(line string) string {
		name := include.FindStringSubmatch(line)[1]
		if ours := path.Join("internal/records", name); s[ours] != "" {
			return s.Whole(ours)
		}
		return s.Whole(path.Join("internal/lease", name)) // what is included is in one of the two
	})
}

var notOfUser = regexp.MustCompile(`(?m)^.* -- not of a user\n`)

// OfUser returns the script for sessions of users, as newScript of package store puts it together.
func (s Scripts) OfUser(file string) string {
	text := notOfUser.ReplaceAllString(s.Whole(file), "")
	text = strings.ReplaceAll(text, "-- of a user: ", "")
	const begin = "-- framed from here\n"
	if first, rest, framed := strings.Cut(text, begin); framed {
		return first + s["internal/records/user.lua"] + rest
	}
	return s["internal/records/user.lua"] + text
}

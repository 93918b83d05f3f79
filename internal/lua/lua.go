// Package lua assembles the scripts that Redis runs. Their sources are in [Dirs]; parts that several
// scripts need are in this directory. A script includes a part by {{template "part"}}.
//
// The assembled script is in the directory golden beside its source. The library embeds that file, so no
// script is assembled while a program runs. After a change of a source, or of a part, write it again:
//
//	go test ./internal/lua -update
//
// Each script runs in a frame, frame.lua, which numbers the reply. A script may {{define "first"}} code that
// runs before the frame, for the usual case; that code numbers its reply itself. The frame costs Redis half
// a microsecond.
//
// The keys of a session's script come in this order: the record, the lock, the queue; for a user's session
// also the mark, and the list if the script changes it; and last the key of a staged record, if an argument
// says so. So the number of keys tells the script whether the session is a user's.
package lua

import (
	"embed"
	"path"
	"strings"
	"text/template"
)

// Dirs are the directories with scripts, from Latchkey's root.
var Dirs = []string{"internal/records", "internal/lease", "locker"}

//go:embed *.lua
var files embed.FS

// Parts returns the parts, by their names.
func Parts() map[string]string {
	parts := make(map[string]string)
	found, _ := files.ReadDir(".") // cannot fail: it is embedded
	for _, file := range found {
		text, _ := files.ReadFile(file.Name())
		parts[Name(file.Name())] = string(text)
	}
	return parts
}

// Name returns the name of the part or script in a file.
func Name(file string) string { return strings.TrimSuffix(path.Base(file), ".lua") }

// Whole returns the script as Redis runs it.
func Whole(script string, parts map[string]string) (string, error) {
	all := template.New("")
	for name, text := range parts {
		if _, err := all.New(name).Parse(text); err != nil {
			return "", err
		}
	}
	if _, err := all.New("script").Parse(script); err != nil {
		return "", err
	}
	var b strings.Builder
	err := all.ExecuteTemplate(&b, "frame", nil)
	return b.String(), err
}

// Package lua puts the scripts together that Redis runs. The sources are [Dirs]; what several of them need
// lies here, in parts. A script includes a part by {{template "part"}}.
//
// What Redis runs lies beside each source, in the directory golden, and is what the library embeds: no script
// is put together while a program runs. After a change of a source, or of a part, write it anew:
//
//	go test ./internal/lua -update
//
// Each script runs in a frame, frame.lua: it numbers the reply. A script may {{define "first"}} what runs
// before the frame, for what is nearly always the case, and numbers its reply itself. The frame costs Redis
// half a microsecond.
//
// A session's script gets its keys in this order: the record, the lock, the queue; of a user's session also
// the mark, and the list if the script changes that; and last the key of a staged record, if an argument says
// so. So the number of keys tells it whom it serves.
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

// Whole returns what Redis runs for a script.
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

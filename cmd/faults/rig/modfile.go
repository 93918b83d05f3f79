package rig

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/a2139e8d/latchkey/testdata/overlay"
)

// An Edit changes a file of Latchkey's, of Go's, or of another module's.
type Edit = overlay.Edit

// Modfile returns the path of a go.mod like that of this module, but with another module
// changed by an edit, whose path begins at that module's root. It is needed because Go
// permits no overlay over downloaded modules.
func Modfile(tb testing.TB, module string, edit Edit) string {
	tb.Helper()
	path, err := modfile(tb.TempDir(), module, edit)
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

func modfile(dir, module string, edit Edit) (path string, err error) {
	changed := filepath.Join(dir, "changed")
	original, err := overlay.Sources(module)
	if err == nil {
		err = os.CopyFS(changed, os.DirFS(original))
	}
	var text string
	if err == nil {
		file := filepath.Join(changed, edit.File)
		if text, err = edit.Apply(file); err == nil {
			err = os.WriteFile(file, []byte(text), 0o666)
		}
	}
	if err != nil {
		return "", err
	}
	root, err := overlay.Sources("github.com/a2139e8d/latchkey")
	if err != nil {
		return "", err
	}
	latchkey := "github.com/a2139e8d/latchkey => "
	for name, edit := range map[string]Edit{
		"go.mod": {Old: latchkey + "../..", New: latchkey + strconv.Quote(root) + "\n\nreplace " + module + " => " + strconv.Quote(changed)},
		"go.sum": {},
	} {
		if text, err = edit.Apply(name); err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666)
		}
		if err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "go.mod"), nil
}

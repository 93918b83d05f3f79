package overlay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sources writes files, and returns their directory.
func sources(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Edits of one file add up, and are applied on top of the changes in LATCHKEY_OVERLAY.
func TestWriteAddsToWhatIsChangedAlready(t *testing.T) {
	first, err := Write(t.TempDir(), []Edit{Append("store/take.lua", "\n-- one")})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(Env, first)
	dir := sources(t, map[string]string{"a.go": "package a\n\nconst one = 1\n"})
	second, err := Write(t.TempDir(), []Edit{
		Append("store/take.lua", ", two"),
		Append("store/take.lua", ", three"),
		Append("$GOROOT/src/time/new.go", "package time"),
		In(dir, "one").Set("2"),
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(second)
	var list struct{ Replace map[string]string }
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil || len(list.Replace) != 3 {
		t.Fatalf("%d files: %s, %v", len(list.Replace), text, err)
	}
	t.Setenv(Env, second)
	for from := range list.Replace {
		want := map[string]string{"take.lua": "\n-- one, two, three", "new.go": "package time", "a.go": "const one = 2\n"}[filepath.Base(from)]
		if text, err := ReadFile(from); err != nil || !strings.HasSuffix(string(text), want) {
			t.Errorf("%s is %q, %v", from, text, err)
		}
	}
}

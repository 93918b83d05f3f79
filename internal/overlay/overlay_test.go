package overlay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestApply(t *testing.T) {
	there := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(there, []byte("a b a"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file string
		Edit
		want string // "": it fails
	}{
		{there, Edit{Old: "a", New: "c"}, "c b c"},
		{there, Edit{New: " end"}, "a b a end"},
		{there, Edit{Old: "d", New: "c"}, ""},
		{there + ".new", Edit{New: "begin"}, "begin"},
		{there + ".new", Edit{Old: "a", New: "c"}, ""},
		{filepath.Dir(there), Edit{New: "no file"}, ""},
	} {
		if got, err := tt.Apply(tt.file); got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%+v: %q, %v", tt, got, err)
		}
	}
}

// Edits of one file add up, and are applied on top of the changes in LATCHKEY_OVERLAY.
func TestOverlay(t *testing.T) {
	first, err := Write(t.TempDir(), []Edit{{File: "store/take.lua", New: "\n-- one"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(Env, first)
	second, err := Write(t.TempDir(), []Edit{
		{File: "store/take.lua", Old: "-- one", New: "-- one, two"},
		{File: "store/take.lua", New: ", three"},
		{File: "$GOROOT/src/time/new.go", New: "package time"},
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(second)
	var list struct{ Replace map[string]string }
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil || len(list.Replace) != 2 {
		t.Fatalf("%d files: %s, %v", len(list.Replace), text, err)
	}
	for from, to := range list.Replace {
		text, err := os.ReadFile(to)
		switch {
		case err != nil:
			t.Error(err)
		case strings.HasSuffix(from, filepath.FromSlash("store/take.lua")):
			if !strings.HasSuffix(string(text), "\n-- one, two, three") || len(text) < 100 {
				t.Errorf("%s is %q", from, text)
			}
		case string(text) != "package time":
			t.Errorf("%s is %q", from, text)
		}
	}
}

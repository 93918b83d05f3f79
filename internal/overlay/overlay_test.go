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

// Edits of one file add up. They are applied on top of the changes in LATCHKEY_OVERLAY.
func TestWriteAddsToWhatIsChangedAlready(t *testing.T) {
	first, err := Write(t.TempDir(), []Edit{Append("internal/records/take.lua", "\n-- one")})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(Env, first)
	dir := sources(t, map[string]string{"a.go": "package a\n\nconst one = 1\n"})
	second, err := Write(t.TempDir(), []Edit{
		Append("internal/records/take.lua", ", two"),
		Append("internal/records/take.lua", ", three"),
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
	if err != nil || len(list.Replace) != 4 /* and what Redis runs */ {
		t.Fatalf("%d files: %s, %v", len(list.Replace), text, err)
	}
	t.Setenv(Env, second)
	for from := range list.Replace {
		want := map[string]string{"take.lua": "\n-- one, two, three", "new.go": "package time", "a.go": "const one = 2\n"}[filepath.Base(from)]
		if text, err := ReadFile(from); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s is %q, %v", from, text, err)
		}
	}
}

const luaSource = `-- A script.
if found == ARGV[1] -- rule: one
  and f(KEYS[1]) then -- rule: two
  return lost and 3 or 0 -- rule: three
end
local ours = a == b -- rule: four
  or (c -- rule: five
    and d)
call('ZREM', KEYS[2], member) -- rule: six
set(queue, found .. place .. ' ', 'PX', max(1, a)) -- rule: seven
if x then -- rule: twice
end
if y then -- rule: twice
end
`

func TestAnEditChangesALineOfLua(t *testing.T) {
	script, err := absolute("internal/records/script.lua")
	if err != nil {
		t.Fatal(err)
	}
	dir := sources(t, map[string]string{"script.lua": luaSource})
	text, err := json.Marshal(list{map[string]string{script: filepath.Join(dir, "script.lua")}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "list"), text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(Env, filepath.Join(dir, "list"))
	for _, tt := range []struct {
		edit    Edit
		old, by string // "": the edit is refused
	}{
		{Rule("one").True(), "if found == ARGV[1] --", "if true --"},
		{Rule("two").False(), "and f(KEYS[1]) then", "and not ARGV then"},
		{Rule("two").Or("KEYS[4]"), "and f(KEYS[1]) then", "and (KEYS[4] or f(KEYS[1])) then"},
		{Rule("one").And("KEYS[4]"), "found == ARGV[1]", "(KEYS[4] and found == ARGV[1])"},
		{Rule("three").False(), "return lost and 3 or 0", "return not ARGV"},
		{Rule("three").Swap("3", "0"), "lost and 3 or 0", "lost and 0 or 0"},
		{Rule("four").False(), "local ours = a == b", "local ours = not ARGV"},
		{Rule("six").Drop(), "call('ZREM', KEYS[2], member) -- rule: six", ""},
		{Rule("six").Before("x()"), "call('ZREM'", "x()\ncall('ZREM'"},
		{Rule("seven").After("x()"), "max(1, a)) --", "max(1, a))\nx() --"},
		{Rule("seven").Call("f(q, p, 'PX', t)", "f(q, g(p, 'p'), 'EX', t)"), "set(queue, found .. place .. ' ', 'PX', max(1, a))",
			"set(queue, g(found .. place .. ' ', 'p'), 'EX', max(1, a))"},
		{Rule("seven").Call("max(1, a)", "2"), "max(1, a)", "2"},
		{Rule("twice").All().True(), "if x then -- rule: twice\nend\nif y then", "if true then -- rule: twice\nend\nif true then"},
		{edit: Rule("twice").True()},
		{edit: Rule("none").True()},
		{edit: Rule("five").True()}, // the condition spans two lines
		{edit: Rule("six").True()},  // the line has no condition
		{edit: Rule("three").Swap("lost", "found")},
		{edit: Rule("three").Swap("4", "0")},
		{edit: Rule("seven").Call("f(q)", "f()")},
		{edit: Rule("seven").Call("f(q, p, 'EX', t)", "f()")},
		{edit: Rule("seven").Call("f(q, q, 'PX', t)", "f()")},
		{edit: Rule("seven").Call("set", "f()")},
	} {
		changed, err := Apply([]Edit{tt.edit})
		if tt.old == "" {
			if err == nil {
				t.Errorf("%s is not refused:\n%s", tt.edit.name, changed[script])
			}
			continue
		}
		want := strings.Replace(luaSource, tt.old, tt.by, 1)
		if err != nil || changed[script] != want || want == luaSource {
			t.Errorf("%q by %q: %v\n%s", tt.old, tt.by, err, changed[script])
		}
	}
}

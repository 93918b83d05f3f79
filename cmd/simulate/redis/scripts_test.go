package redis

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// signatures tell what the keys and arguments of the project's scripts are. The last
// argument of each is the number of the call.
var signatures = map[string]signature{
	"internal/lease/extend.lua":  {"lock", "token lease"},
	"internal/lease/pass.lua":    {"lock queue", "token token lease"},
	"internal/lease/quit.lua":    {"lock queue", "place"},
	"internal/lease/release.lua": {"lock queue", "token delay"},
	"internal/lease/take.lua":    {"lock queue", "token lease place"},
	"locker/timestamp.lua":       {"time note", "mode token delay moment"},
	"store/commit.lua":           {"record lock queue staged?", "token base ttl text/none next? lease?"},
	"store/create.lua":           {"record", "stamp text lease"},
	"store/drop.lua":             {"record", "stamp"},
	"store/extend.lua":           {"record lock", "token lease base"},
	"store/load.lua":             {"record", "began lease size delay delay"},
	"store/replace.lua":          {"record staged?", "base text lease"},
	"store/take.lua":             {"record lock queue", "token lease size began place lease"},
}

type signature struct{ keys, args string }

// included are files that are no scripts by themselves.
var included = []string{"internal/lease/queue.lua", "internal/lease/set.lua", "store/record.lua"}

// source reads a file of the project.
func source(tb testing.TB, file string) string {
	tb.Helper()
	text, err := os.ReadFile("../../../" + file)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// framed returns a script of the project as its client runs it. What wraps it is read
// from the source, so that it is never another.
func framed(tb testing.TB, file string) string {
	tb.Helper()
	text := source(tb, file)
	for _, file := range included {
		text = strings.Replace(text, "-- include "+filepath.Base(file)+"\n", source(tb, file), 1)
	}
	if strings.Contains(text, "-- include") {
		tb.Fatalf("%s includes what this test does not know", file)
	}
	const begin = `"local function script()\n" + rest + ` + "`"
	_, frame, ok := strings.Cut(source(tb, "internal/scripting/sequence.go"), begin)
	end, _, ok2 := strings.Cut(frame, "`")
	if !ok || !ok2 {
		tb.Fatal("internal/scripting/sequence.go wraps scripts in another way than this test knows")
	}
	first, rest, ok := strings.Cut(text, "-- framed from here\n")
	if !ok {
		first, rest = "", text
	}
	return first + "local function script()\n" + rest + end
}

// A script that is new, or has got an argument more, would not be compared well.
func TestTheSignaturesAreThoseOfTheScripts(t *testing.T) {
	var files []string
	for _, folder := range []string{"internal/lease/", "locker/", "store/"} {
		found, err := filepath.Glob("../../../" + folder + "*.lua")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if file := folder + filepath.Base(path); !slices.Contains(included, file) {
				files = append(files, file)
			}
		}
	}
	if known := slices.Sorted(maps.Keys(signatures)); !slices.Equal(files, known) {
		t.Errorf("scripts %q, signatures %q", files, known)
	}
	for file, signature := range signatures {
		text, n := source(t, file), len(strings.Fields(signature.args))
		if !strings.Contains(text, "ARGV["+strconv.Itoa(n)+"]") || strings.Contains(text, "ARGV["+strconv.Itoa(n+2)+"]") {
			t.Errorf("%s does not use %d arguments and the number of the call", file, n)
		}
		if n := len(strings.Fields(signature.keys)); !strings.Contains(text, "KEYS["+strconv.Itoa(n)+"]") || strings.Contains(text, "KEYS["+strconv.Itoa(n+1)+"]") {
			t.Errorf("%s does not use %d keys", file, n)
		}
	}
}

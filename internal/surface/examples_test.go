package surface

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// lookedUpFirst are the symbols at which a newcomer looks for an example. Modules that are not listed here, such as
// store/rueidisstore, have theirs in their own tests.
var lookedUpFirst = map[string][]string{
	"session": {
		"", "FromContext", "Get", "NewContext", "Pop", "Start", "Session.Commit", "Session.Decode", "Session.Destroy",
		"Session.Discard", "Session.ID", "Session.IsNew", "Session.Keys", "Session.Login", "Session.LoginTime",
		"Session.Remember", "Session.Renew", "Session.Reopen", "Session.Set", "Session.Touch", "Session.User",
	},
	"store": {"Encryption", "New", "NewOn", "Open", "Store.Close", "Store.Ping"},
	"middleware": {
		"Bearer", "ByMethod", "Hooks", "Mode", "New", "Observer", "Options", "Recoverer", "Sessions.Debug", "Sessions.End", "Sessions.EndAll",
		"Sessions.Exclusive", "Sessions.FromContext", "Sessions.Handler", "Sessions.ID", "Sessions.Lazy", "Sessions.List",
		"Sessions.None", "Sessions.Optimistic", "Sessions.Passive", "Sessions.Peek", "Sessions.ReadOnly", "Sessions.Requests",
		"Sessions.Token", "Sessions.Update", "Status",
	},
	"middleware/sessiontest": {"New"},
	"locker": {
		"HeldError", "Lease.Extend", "Lease.OnLost", "Lease.UnlockAfter", "New", "NewRedlock", "NewSpin", "NewTimestamp",
		"WithLabel",
	},
	"locker/transport": {"NewRedigo"},
}

// Each symbol at which a newcomer looks first has an example that runs: it shows what it prints, and uses only
// names that its page defines.
func TestWhereOneLooksFirstThereIsAnExampleThatRuns(t *testing.T) {
	t.Parallel()
	for pkg, symbols := range lookedUpFirst {
		examples := examplesOf(t, pkg)
		for _, symbol := range symbols {
			runs := func(e *doc.Example) bool { return isOf(e, symbol) && e.Output != "" && e.Play != nil }
			if !slices.ContainsFunc(examples, runs) {
				t.Errorf("%s.%s has no example that runs", pkg, symbol)
			}
		}
	}
}

// isOf reports whether documentation shows an example at a symbol, perhaps with a suffix, which is in lower case.
func isOf(e *doc.Example, symbol string) bool {
	rest, ok := strings.CutPrefix(e.Name, strings.ReplaceAll(symbol, ".", "_"))
	first, _ := utf8.DecodeRuneInString(strings.TrimPrefix(rest, "_"))
	return ok && (rest == "" || (symbol == "" || rest[0] == '_') && unicode.IsLower(first))
}

// examplesOf returns the examples in those files of a package whose names say that they are examples.
func examplesOf(t *testing.T, pkg string) []*doc.Example {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", pkg, "example*_test.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", pkg, len(paths), err)
	}
	var files []*ast.File
	all := token.NewFileSet()
	for _, path := range paths {
		file, err := parser.ParseFile(all, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return doc.Examples(files...)
}

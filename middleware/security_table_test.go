package middleware_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// asvs are the rows of OWASP ASVS 5.0 that SECURITY.md must go through: all of V7 and
// of V3.3, and what is said about forged requests and caches.
var asvs = strings.Fields(`
	7.1.1 7.1.2 7.1.3 7.2.1 7.2.2 7.2.3 7.2.4 7.3.1 7.3.2 7.4.1 7.4.2 7.4.3 7.4.4 7.4.5
	7.5.1 7.5.2 7.5.3 7.6.1 7.6.2 3.3.1 3.3.2 3.3.3 3.3.4 3.3.5 3.5.1 14.3.2`)

// The table in SECURITY.md is complete, and the tests that it names are there.
func TestTheSecurityTableIsTrue(t *testing.T) {
	t.Parallel()
	text := read(t, "SECURITY.md")
	tests, err := testsOfTheModule()
	if err != nil {
		t.Fatal(err)
	}
	if !tests["middleware.TestTheSecurityTableIsTrue"] || !tests["store.TestRenew"] || tests["store.TestSoak"] || len(tests) < 200 {
		t.Fatalf("of the module's tests %d were found", len(tests))
	}
	for _, complaint := range complaints(text, tests) {
		t.Error(complaint)
	}
}

var (
	testName = regexp.MustCompile("`(?:([a-z]+)\\.)?((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")
	asvsRow  = regexp.MustCompile(`(?m)^\| (\d+\.\d\.\d) \|[^|]+\|([^|]+)\|([^|]+)\|$`)
)

// complaints returns what is wrong with the table.
func complaints(text string, tests map[string]bool) (found []string) {
	for _, name := range testName.FindAllStringSubmatch(text, -1) {
		in := name[1]
		if in == "" {
			in = "middleware"
		}
		if !tests[in+"."+name[2]] {
			found = append(found, fmt.Sprintf("there is no %s in package %s", name[2], in))
		}
	}
	var rows []string
	for _, row := range asvsRow.FindAllStringSubmatch(text, -1) {
		number, how, shown := row[1], row[2], row[3]
		rows = append(rows, number)
		ours, theirs := strings.Contains(how, "**Latchkey"), strings.Contains(how, "**Application")
		switch shows := testName.MatchString(shown); {
		case !ours && !theirs:
			found = append(found, number+" does not say whose it is")
		case ours && !shows:
			found = append(found, number+" names no test")
		}
	}
	if !slices.Equal(rows, asvs) {
		found = append(found, fmt.Sprintf("the rows are %v, want %v", rows, asvs))
	}
	return found
}

// testsOfTheModule returns the tests, fuzz targets and benchmarks of this module that
// run here without a build tag, as package.Name.
var testsOfTheModule = sync.OnceValues(func() (map[string]bool, error) {
	found := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "..":
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir // another module
			}
			return nil
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		if match, err := build.Default.MatchFile(filepath.Dir(path), d.Name()); err != nil || !match {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && isTest(f) {
				found[strings.TrimSuffix(file.Name.Name, "_test")+"."+f.Name.Name] = true
			}
		}
		return nil
	})
	return found, err
})

// isTest reports whether go test runs f: its name, and the type of its parameter.
func isTest(f *ast.FuncDecl) bool {
	if f.Recv != nil || len(f.Type.Params.List) != 1 {
		return false
	}
	pointer, ok := f.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	of, ok := pointer.X.(*ast.SelectorExpr)
	return ok && (strings.HasPrefix(f.Name.Name, "Test") && of.Sel.Name == "T" ||
		strings.HasPrefix(f.Name.Name, "Fuzz") && of.Sel.Name == "F" ||
		strings.HasPrefix(f.Name.Name, "Benchmark") && of.Sel.Name == "B")
}

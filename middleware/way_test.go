package middleware

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The way of a request, at the top of middleware.go and, from there on, of store.go, names
// functions that are in the files it says.
func TestTheWayOfARequestIsTrue(t *testing.T) {
	t.Parallel()
	for path, least := range map[string]int{"middleware.go": 12, "../store/store.go": 18} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		steps := regexp.MustCompile(`(?m)^//\t *(\w+\.)?(\w+) +([\w/]+\.go)\b`).FindAllStringSubmatch(string(text), -1)
		if len(steps) < least {
			t.Fatalf("%s has only %d steps", path, len(steps))
		}
		for _, step := range steps {
			receiver, name, file := strings.TrimSuffix(step[1], "."), step[2], step[3]
			if folder, _, elsewhere := strings.Cut(file, "/"); !elsewhere {
				file = filepath.Join(filepath.Dir(path), file)
			} else if folder == "transport" {
				file = "../locker/" + file
			} else {
				file = "../internal/" + file
			}
			if f := function(t, file, name); f == nil || receiver != "" && receiverOf(f) != receiver {
				t.Errorf("%s: %s has no %s%s", path, file, step[1], name)
			}
		}
	}
}

// function returns the function or method of that name in a file, or nil.
func function(t *testing.T, file, name string) *ast.FuncDecl {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == name {
			return f
		}
	}
	return nil
}

// receiverOf returns the name of the type that f is a method of, or "".
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	return of.(*ast.Ident).Name
}

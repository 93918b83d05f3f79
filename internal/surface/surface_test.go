// Package surface tests the part of the module that other programs see.
package surface

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write exported.txt")

// exported.txt lists all exported names, so that none is exported or removed by accident.
func TestExportedNames(t *testing.T) {
	t.Parallel()
	var names []string
	for _, pkg := range []string{"session", "store", "store/embedded", "middleware", "middleware/sessiontest", "locker", "locker/transport"} {
		names = append(names, exported(t, pkg)...)
	}
	got := strings.Join(names, "\n") + "\n"
	if *update {
		if err := os.WriteFile("exported.txt", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := os.ReadFile("exported.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(listed))
	for _, name := range names {
		if !slices.Contains(want, name) {
			t.Errorf("%s is exported, but not in exported.txt: if a program needs it, run this test with -update", name)
		}
	}
	for _, name := range want {
		if !slices.Contains(names, name) {
			t.Errorf("%s is in exported.txt, but not exported: programs may use it", name)
		}
	}
}

// exported returns the names of types, functions, variables and constants, and of the methods and fields of types.
func exported(t *testing.T, pkg string) (names []string) {
	t.Helper()
	add := func(parts ...string) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !ast.IsExported(part) }) {
			names = append(names, pkg+"."+strings.Join(parts, "."))
		}
	}
	for _, file := range parse(t, filepath.Join("..", "..", pkg)) {
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					add(decl.Name.Name)
				} else {
					add(receiver(decl.Recv.List[0].Type), decl.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							add(name.Name)
						}
					case *ast.TypeSpec:
						add(spec.Name.Name)
						for _, member := range members(spec.Type) {
							for _, name := range member.Names {
								add(spec.Name.Name, name.Name)
							}
						}
					}
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// members returns the methods of an interface, or the fields of a struct.
func members(of ast.Expr) []*ast.Field {
	switch of := of.(type) {
	case *ast.InterfaceType:
		return of.Methods.List
	case *ast.StructType:
		return of.Fields.List
	}
	return nil
}

// parse returns the files of a package without its tests.
func parse(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	all, err := fs.Glob(os.DirFS(dir), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// receiver returns the name of a receiver's type.
func receiver(of ast.Expr) string {
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	return of.(*ast.Ident).Name
}

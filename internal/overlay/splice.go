package overlay

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A splice replaces the text between two positions. Everything else stays, including comments and build
// tags.
type splice struct {
	from, to token.Pos
	text     string
}

// spliced returns a text after all splices. off is added to their positions.
func spliced(text string, splices []splice, off int) string {
	slices.SortStableFunc(splices, func(a, b splice) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	at := 0
	for _, s := range splices {
		b.WriteString(text[at : int(s.from)+off])
		b.WriteString(s.text)
		at = int(s.to) + off
	}
	b.WriteString(text[at:])
	return b.String()
}

// change applies splices to the file. text is the new code, and may need imports.
func (f *goFile) change(splices []splice, text string) error {
	after := spliced(string(f.text), append(splices, f.naming...), f.off())
	changed, err := parseFile(f.tree, f.path, []byte(after))
	if err != nil {
		return fmt.Errorf("it does not fit in: %w", err)
	}
	imports, err := changed.imports(f, text)
	if err != nil {
		return err
	}
	f.tree.changed[f.path] = spliced(after, imports, changed.off())
	return nil
}

// off is the number that turns positions into offsets.
func (f *goFile) off() int { return -f.set.File(f.file.Pos()).Base() }

// imports adapts the imports to a change: it keeps packages that are no longer used from being an error,
// and imports packages of the new text that another file of the package imports.
func (f *goFile) imports(before *goFile, text string) (splices []splice, _ error) {
	uses, used := qualifiers(f.file), qualifiers(before.file)
	for _, spec := range f.file.Imports {
		if name := importName(spec); used[name] && !uses[name] {
			splices = append(splices, splice{spec.Pos(), spec.Path.Pos(), "_ "})
		}
	}
	missing := make(map[string]bool)
	for name := range uses {
		if !used[name] && strings.Contains(text, name+".") {
			missing[name] = true
		}
	}
	for _, spec := range f.file.Imports {
		delete(missing, importName(spec))
	}
	found, err := f.importedBeside(missing)
	for _, line := range found {
		splices = append(splices, splice{f.file.Name.End(), f.file.Name.End(), "; import " + line})
	}
	return splices, err
}

// importedBeside returns the imports of other files of the package with these names.
func (f *goFile) importedBeside(names map[string]bool) (found []string, _ error) {
	files, err := f.tree.files(path.Dir(f.path), ".go")
	for i := 0; i < len(files) && len(names) > 0 && err == nil; i++ {
		var text []byte
		if text, err = f.tree.read(files[i]); err != nil {
			break
		}
		var other *goFile
		if other, err = parseFile(f.tree, files[i], text); err != nil {
			break
		}
		for _, spec := range other.file.Imports {
			if name := importName(spec); names[name] {
				delete(names, name)
				found = append(found, name+" "+spec.Path.Value)
			}
		}
	}
	return found, err
}

// qualifiers returns the names before a dot in a file.
func qualifiers(file *ast.File) map[string]bool {
	found := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := selector.X.(*ast.Ident); ok {
				found[of.Name] = true
			}
		}
		return true
	})
	return found
}

// importName is the name under which a file uses a package, as far as its path shows.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	full, _ := strconv.Unquote(spec.Path.Value)
	name := path.Base(full)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(full))
	}
	return name
}

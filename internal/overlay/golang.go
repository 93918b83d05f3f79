package overlay

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// A Place is a function of a package, or a constant or variable outside of all functions.
type Place struct {
	dir, name string
	all       bool
}

// In returns a place by the directory of its package and its name. A method is "tenure.end" or
// "(*tenure).end". The file does not matter.
//
// A pattern selects what an edit changes there: an expression, or consecutive statements. In a pattern
// each single lower-case letter matches any expression, and all uses of the letter the same text. So
// "t.flush(c, v)" is a call of that method with two arguments, whatever their names. In the replacement,
// each letter stands for what it has matched.
//
// In replacements and patterns, $recv is the receiver, $1 the first parameter and $r1 the first result,
// whatever their names. A result without a name gets one.
func In(dir, name string) Place {
	return Place{dir: dir, name: strings.NewReplacer("(*", "", ")", "").Replace(name)}
}

// All returns the same place, for edits of all matches there instead of the only one.
func (p Place) All() Place {
	p.all = true
	return p
}

// Replace replaces an expression by an expression, or statements by statements.
func (p Place) Replace(pattern, by string) Edit {
	if !isExpression(pattern) || !isExpression(by) {
		return p.around(pattern, by, false, "")
	}
	return p.edit(pattern, func(f *goFile, n ast.Node) error {
		matches, err := f.expressions(n, pattern)
		if err != nil {
			return err
		}
		return f.each(p, matches, func(m match) splice { return splice{m.from, m.to, f.expand(operand(by), m)} })
	})
}

// Drop removes statements.
func (p Place) Drop(pattern string) Edit { return p.around(pattern, "", false, "") }

// Before inserts statements before the matching ones.
func (p Place) Before(pattern, text string) Edit { return p.around(pattern, text+"\n", true, "") }

// After inserts statements after the matching ones.
func (p Place) After(pattern, text string) Edit { return p.around(pattern, "", true, "\n"+text) }

// True makes a condition true. Its variables still count as used.
func (p Place) True(pattern string) Edit { return p.Replace(pattern, "(true || ("+pattern+"))") }

// False makes a condition false. Its variables still count as used.
func (p Place) False(pattern string) Edit { return p.Replace(pattern, "(false && ("+pattern+"))") }

// Begin inserts statements at the beginning of a function.
func (p Place) Begin(text string) Edit {
	return p.edit("", func(f *goFile, n ast.Node) error {
		decl, ok := n.(*ast.FuncDecl)
		if !ok || decl.Body == nil {
			return errors.New("it is not a function")
		}
		at := decl.Body.Lbrace + 1
		return f.change([]splice{{at, at, "\n" + f.expand(text, match{}) + "\n"}}, text)
	})
}

// Return makes a function return values at once. The rest of it stays, but is not reached.
func (p Place) Return(values string) Edit { return p.Begin("if true { return " + values + " }") }

// Set gives a constant or variable another value.
func (p Place) Set(value string) Edit {
	return p.edit("", func(f *goFile, n ast.Node) error {
		spec, ok := n.(*ast.ValueSpec)
		for i := 0; ok && i < len(spec.Names) && i < len(spec.Values); i++ {
			if v := spec.Values[i]; spec.Names[i].Name == p.name {
				return f.change([]splice{{v.Pos(), v.End(), value}}, value)
			}
		}
		return errors.New("it is no constant or variable with a value")
	})
}

// InStrings replaces a text in all string literals of a place that contain it.
func (p Place) InStrings(old, by string) Edit {
	return p.edit(strconv.Quote(old), func(f *goFile, n ast.Node) error {
		var splices []splice
		ast.Inspect(n, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, old) {
				splices = append(splices, splice{lit.Pos(), lit.End(), strings.ReplaceAll(lit.Value, old, by)})
			}
			return true
		})
		if len(splices) == 0 {
			return errors.New("no string has it")
		}
		return f.change(splices, "")
	})
}

// around puts texts before and after statements, which it keeps or removes.
func (p Place) around(pattern, before string, keep bool, after string) Edit {
	return p.edit(pattern, func(f *goFile, n ast.Node) error {
		matches, err := f.statements(n, pattern)
		if err != nil {
			return err
		}
		return f.each(p, matches, func(m match) splice {
			text := f.expand(before, m)
			if keep {
				text += f.between(m.from, m.to)
			}
			return splice{m.from, m.to, text + f.expand(after, m)}
		})
	})
}

// edit makes an edit from a change of the place's declaration.
func (p Place) edit(pattern string, do func(f *goFile, n ast.Node) error) Edit {
	name := p.dir + " " + p.name
	if pattern != "" {
		name += ": " + pattern
	}
	return Edit{name, func(t *tree) error {
		f, n, err := p.find(t)
		if err != nil {
			return err
		}
		return do(f, n)
	}}
}

// find finds the declaration in the files that are built on this system.
func (p Place) find(t *tree) (found *goFile, decl ast.Node, err error) {
	files, err := t.files(p.dir, ".go")
	if err != nil {
		return nil, nil, err
	}
	_, method, isMethod := strings.Cut(p.name, ".")
	if !isMethod {
		method = p.name
	}
	for _, path := range files {
		text, err := t.read(path)
		if err != nil {
			return nil, nil, err
		}
		if !bytes.Contains(text, []byte(method)) {
			continue
		}
		if built, err := build.Default.MatchFile(filepath.Split(path)); err == nil && !built {
			continue
		}
		f, err := parseFile(t, path, text)
		if err != nil {
			return nil, nil, err
		}
		if n := f.declaration(p.name); n != nil {
			return f, n, nil
		}
	}
	return nil, nil, fmt.Errorf("the package has no %s", p.name)
}

// A goFile is a Go file that is being changed.
type goFile struct {
	tree   *tree
	path   string
	text   []byte
	set    *token.FileSet
	file   *ast.File
	decl   *ast.FuncDecl // the function for $recv, $1 and $r1
	naming []splice      // splices that name its results
}

func parseFile(t *tree, path string, text []byte) (*goFile, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &goFile{tree: t, path: path, text: text, set: set, file: file}, nil
}

// declaration returns the declaration of a name, or nil.
func (f *goFile) declaration(name string) ast.Node {
	for _, decl := range f.file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if fullName(decl) == name {
				f.decl = decl
				return decl
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				values, _ := spec.(*ast.ValueSpec)
				for i := 0; values != nil && i < len(values.Names); i++ {
					if values.Names[i].Name == name {
						return values
					}
				}
			}
		}
	}
	return nil
}

// fullName returns "end", or "tenure.end" for a method.
func fullName(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	of := decl.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	name, _ := of.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name + "." + decl.Name.Name
}

// between returns a part of the text.
func (f *goFile) between(from, to token.Pos) string {
	return string(f.text[f.set.Position(from).Offset:f.set.Position(to).Offset])
}

// BeginAll inserts statements at the beginning of every function of a package that is built on this
// system. text returns the statements for a function, given its file (by the path from Latchkey's root)
// and its name.
func BeginAll(dir string, text func(file, function string) string) Edit {
	return Edit{dir, func(t *tree) error {
		files, err := t.files(dir, ".go")
		if err != nil {
			return err
		}
		for _, path := range files {
			if built, err := build.Default.MatchFile(filepath.Split(path)); err == nil && !built {
				continue
			}
			source, err := t.read(path)
			if err != nil {
				return err
			}
			f, err := parseFile(t, path, source)
			if err != nil {
				return err
			}
			var splices []splice
			for _, decl := range f.file.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
					at := fn.Body.Lbrace + 1
					splices = append(splices, splice{at, at, text(dir+"/"+filepath.Base(path), fullName(fn)) + ";"})
				}
			}
			if err := f.change(splices, ""); err != nil {
				return err
			}
		}
		return nil
	}}
}

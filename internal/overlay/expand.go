package overlay

import (
	"go/ast"
	"go/parser"
	"regexp"
	"strconv"
	"strings"
)

// A placeholder is the receiver, a parameter or a result. In parsed code it has the form of a name.
var placeholder = regexp.MustCompile(`\$(recv|r?[1-9])`)

const placeholderName = "placeholder_"

func marked(text string) string { return placeholder.ReplaceAllString(text, placeholderName+"$1") }

func placeholderOf(name string) (which string, ok bool) {
	return strings.CutPrefix(name, placeholderName)
}

// expand returns a text in which letters and placeholders are replaced by their values.
func (f *goFile) expand(text string, m match) string {
	text = marked(text)
	stmts, err := parseStatements(text)
	if err != nil {
		return text // the resulting file cannot be parsed either, which is an error
	}
	var splices []splice
	for _, stmt := range stmts {
		splices = append(splices, f.expandIn(stmt, m)...)
	}
	return spliced(text, splices, -1-len(opening))
}

func (f *goFile) expandIn(n ast.Node, m match) (splices []splice) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr: // the name of a field is never a letter
			splices = append(splices, f.expandIn(n.X, m)...)
			return false
		case *ast.Ident:
			if which, ok := placeholderOf(n.Name); ok {
				splices = append(splices, splice{n.Pos(), n.End(), f.nameOf(which)})
			} else if bound := m.bound[n.Name]; bound != nil {
				splices = append(splices, splice{n.Pos(), n.End(), operand(f.between(bound.Pos(), bound.End()))})
			}
		}
		return true
	})
	return splices
}

// operand puts brackets around an expression, unless it needs none.
func operand(text string) string {
	switch expr, _ := parser.ParseExpr(marked(text)); expr.(type) {
	case *ast.BinaryExpr, *ast.UnaryExpr, *ast.StarExpr:
		return "(" + text + ")"
	}
	return text
}

// nameOf returns the name of the receiver, a parameter or a result. If there is none, it returns a text
// that cannot be parsed.
func (f *goFile) nameOf(which string) string {
	const none = "$nameless"
	if f.decl == nil {
		return none
	}
	var all []string
	switch {
	case which == "recv":
		all, which = namesOf(f.decl.Recv), "1"
	case which[0] == 'r':
		all, which = f.results(), which[1:]
	default:
		all = namesOf(f.decl.Type.Params)
	}
	if at, _ := strconv.Atoi(which); at <= len(all) && all[at-1] != "_" {
		return all[at-1]
	}
	return none
}

// results returns the names of the function's results. If they have no names, it gives them some.
func (f *goFile) results() []string {
	results := f.decl.Type.Results
	all := namesOf(results)
	if results == nil || len(all) > 0 {
		return all
	}
	f.naming = nil
	for i, field := range results.List {
		all = append(all, "result"+strconv.Itoa(i+1))
		f.naming = append(f.naming, splice{field.Pos(), field.Pos(), all[i] + " "})
	}
	if !results.Opening.IsValid() {
		f.naming[0].text = "(" + f.naming[0].text
		f.naming = append(f.naming, splice{results.End(), results.End(), ")"})
	}
	return all
}

func namesOf(fields *ast.FieldList) (names []string) {
	if fields == nil {
		return nil
	}
	for _, field := range fields.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

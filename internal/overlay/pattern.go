package overlay

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
)

// A match is a part of a file that a pattern matches, with the values of the pattern's letters.
type match struct {
	from, to token.Pos
	bound    map[string]ast.Expr
}

// each changes all matches of a pattern. There must be exactly one, unless the place is for all.
func (f *goFile) each(p Place, matches []match, change func(match) splice) error {
	switch n := len(matches); {
	case n == 0:
		return fmt.Errorf("nothing matches in %s", f.path)
	case n > 1 && !p.all:
		return fmt.Errorf("%d places match in %s", n, f.path)
	}
	var splices []splice
	var texts []string
	for _, m := range matches {
		s := change(m)
		splices, texts = append(splices, s), append(texts, s.text)
	}
	return f.change(splices, strings.Join(texts, "\n"))
}

// expressions returns the expressions that match, but none within another.
func (f *goFile) expressions(n ast.Node, pattern string) (found []match, _ error) {
	expr, err := parser.ParseExpr(marked(pattern))
	if err != nil {
		return nil, err
	}
	ast.Inspect(body(n), func(n ast.Node) bool {
		value, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		m := f.matcher()
		if !m.match(reflect.ValueOf(expr), reflect.ValueOf(value)) {
			return true
		}
		found = append(found, match{value.Pos(), value.End(), m.bound})
		return false
	})
	return found, nil
}

// statements returns the positions of consecutive statements that match.
func (f *goFile) statements(n ast.Node, pattern string) (found []match, _ error) {
	wanted, err := parseStatements(marked(pattern))
	if err != nil {
		return nil, err
	}
	in := func(list []ast.Stmt) {
		for i := 0; i+len(wanted) <= len(list); i++ {
			m, some := f.matcher(), list[i:i+len(wanted)]
			if m.match(reflect.ValueOf(wanted), reflect.ValueOf(some)) {
				found = append(found, match{some[0].Pos(), some[len(some)-1].End(), m.bound})
			}
		}
	}
	ast.Inspect(body(n), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			in(n.List)
		case *ast.CaseClause:
			in(n.Body)
		case *ast.CommClause:
			in(n.Body)
		}
		return true
	})
	return found, nil
}

// body returns the part of a declaration in which patterns are searched.
func body(n ast.Node) ast.Node {
	if decl, ok := n.(*ast.FuncDecl); ok && decl.Body != nil {
		return decl.Body
	}
	return n
}

func isExpression(text string) bool {
	_, err := parser.ParseExpr(marked(text))
	return err == nil
}

// opening is the text that turns statements into a file.
const opening = "package p\nfunc _() {\n"

func parseStatements(text string) ([]ast.Stmt, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", opening+text+"\n}", parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return file.Decls[0].(*ast.FuncDecl).Body.List, nil
}

package overlay

import (
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"slices"
)

// A matcher compares a pattern with a part of a file.
type matcher struct {
	nameOf func(placeholder string) string
	bound  map[string]ast.Expr // the values of the pattern's letters
}

func (f *goFile) matcher() matcher { return matcher{f.nameOf, make(map[string]ast.Expr)} }

var letter = regexp.MustCompile(`^[a-z]$`)

var typeOfPos = reflect.TypeFor[token.Pos]()

// match compares two syntax trees, but not their positions.
func (m matcher) match(p, v reflect.Value) bool {
	if p.Kind() == reflect.Interface {
		p = p.Elem()
	}
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !p.IsValid() || !v.IsValid() {
		return p.IsValid() == v.IsValid()
	}
	if ident, ok := asNode[*ast.Ident](p); ok {
		return m.matchName(ident.Name, v)
	}
	if paren, ok := asNode[*ast.ParenExpr](v); ok && p.Type() != v.Type() { // brackets have no meaning
		return m.match(p, reflect.ValueOf(paren.X))
	}
	switch {
	case p.Type() != v.Type():
		return false
	case p.Type() == typeOfPos:
		return true
	}
	if selector, ok := asNode[*ast.SelectorExpr](p); ok { // the name of a field is not a letter
		other := v.Interface().(*ast.SelectorExpr)
		return selector.Sel.Name == other.Sel.Name && m.match(reflect.ValueOf(selector.X), reflect.ValueOf(other.X))
	}
	switch p.Kind() {
	case reflect.Pointer:
		if p.IsNil() || v.IsNil() {
			return p.IsNil() == v.IsNil()
		}
		return spread(p) == spread(v) && m.match(p.Elem(), v.Elem())
	case reflect.Struct:
		for i := range p.NumField() {
			if !m.match(p.Field(i), v.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if p.Len() != v.Len() {
			return false
		}
		for i := range p.Len() {
			if !m.match(p.Index(i), v.Index(i)) {
				return false
			}
		}
		return true
	default:
		return p.Interface() == v.Interface()
	}
}

// matchName compares a name of the pattern, which may be a letter or a placeholder.
func (m matcher) matchName(name string, v reflect.Value) bool {
	if expr, ok := asNode[ast.Expr](v); ok && letter.MatchString(name) {
		return m.bind(name, expr)
	}
	ident, ok := asNode[*ast.Ident](v)
	if which, marked := placeholderOf(name); marked {
		name = m.nameOf(which)
	}
	return ok && ident.Name == name
}

// bind binds a letter to an expression. All uses of the letter must be the same expression.
func (m matcher) bind(name string, expr ast.Expr) bool {
	if before, ok := m.bound[name]; ok {
		return same(before, expr)
	}
	m.bound[name] = expr
	return true
}

// same reports whether two expressions of a file have the same text. Their letters are ordinary names.
func same(a, b ast.Expr) bool {
	m := matcher{bound: make(map[string]ast.Expr)}
	return slices.Equal(names(a), names(b)) && m.match(reflect.ValueOf(a), reflect.ValueOf(b))
}

func names(expr ast.Expr) (names []string) {
	ast.Inspect(expr, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok {
			names = append(names, ident.Name)
		}
		return true
	})
	return names
}

// spread reports whether v is a call that ends with "...".
func spread(v reflect.Value) bool {
	call, ok := asNode[*ast.CallExpr](v)
	return ok && call.Ellipsis.IsValid()
}

func asNode[T ast.Node](v reflect.Value) (n T, ok bool) {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		n, ok = v.Interface().(T)
	}
	return n, ok
}

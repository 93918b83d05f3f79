package overlay

import (
	"path/filepath"
	"strings"
	"testing"
)

const goSource = `//go:build go1.26

package a

import "fmt"

//go:embed x
var text string // stays

const limit = 1 << 3

var kinds, none = []string{"one.kind", "two"}, 0

type counter struct{ n int }

// add adds.
func (c *counter) add(by int, _ bool) (int, error) {
	old := c.n /* before */
	if old < limit && (by != 0) {
		c.n += by // the sum
	}
	switch {
	case old > 5, by > 5:
		fmt.Println("large")
	}
	return old, nil
}

func (c counter) get() int { return c.n }

func twice(c *counter, rest ...int) { c.add(1, true); c.add(1, false) }
`

func TestAnEditChangesOnePlaceOfGo(t *testing.T) {
	dir := sources(t, map[string]string{
		"a.go":           goSource,
		"a_windows.go":   "package a\n\nfunc (c counter) get() int { return 0 }\n",
		"b.go":           "package a\n\nimport \"time\"\n\nvar now = time.Now()\n",
		"golang_test.go": "package a\n\nfunc twice() {}\n",
	})
	add := In(dir, "(*counter).add")
	for _, tt := range []struct {
		edit    Edit
		old, by string // a part of a.go, and its replacement
	}{
		{add.Replace("x.n += y", "x.n -= y"), "c.n += by // the sum", "c.n -= by // the sum"},
		{add.Replace("x < limit && y", "y"), "old < limit && (by != 0)", "(by != 0)"},
		{add.Replace("x != 0", "x + 1 != 0"), "(by != 0)", "(by + 1 != 0)"},
		{add.Replace("x := c.n", "x := 2 * c.n"), "old := c.n", "old := 2 * c.n"},
		{add.Replace("return x, nil", "return x, fmt.Errorf(`%d`, x)"), "old, nil", "old, fmt.Errorf(`%d`, old)"},
		{add.True("x != 0"), "(by != 0)", "(true || (by != 0))"},
		{add.All().False("x > 5"), "case old > 5, by > 5:", "case (false && (old > 5)), (false && (by > 5)):"},
		{add.False("$1 > 5"), "by > 5", "(false && (by > 5))"},
		{In(dir, "twice").Drop("c.add(x, true)"), "c.add(1, true); ", "; "},
		{add.Before("$recv.n += x", "$recv.n++"), "c.n += by", "c.n++\nc.n += by"},
		{add.After("x := y.n", "_ = x + y.n"), "c.n /*", "c.n\n_ = old + c.n /*"},
		{add.Begin("$1 = -$1"), "(int, error) {\n", "(int, error) {\nby = -by\n\n"},
		{add.Begin("$r1, $r2 = 0, nil"), "(int, error) {\n", "(result1 int, result2 error) {\nresult1, result2 = 0, nil\n\n"},
		{In(dir, "counter.get").Begin("$r1 = 2"), "get() int {", "get() (result1 int) {\nresult1 = 2\n"},
		{In(dir, "counter.get").Return("0"), "get() int {", "get() int {\nif true { return 0 }\n"},
		{In(dir, "twice").Replace("c.add(x, true)", "c.add(x, false)"), "c.add(1, true)", "c.add(1, false)"},
		{In(dir, "twice").Replace("c.add(x, y)\nc.add(x, z)", "c.add(x, z)"), "c.add(1, true); c.add(1, false)", "c.add(1, false)"},
		{In(dir, "limit").Set("9"), "1 << 3", "9"},
		{In(dir, "none").Set("1"), `"two"}, 0`, `"two"}, 1`},
		{In(dir, "kinds").Replace(`"two"`, `"three"`), `"two"`, `"three"`},
		{In(dir, "kinds").InStrings(".kind", ".sort"), "one.kind", "one.sort"},
	} {
		changed, err := Apply([]Edit{tt.edit})
		got := changed[filepath.Join(dir, "a.go")]
		if want := strings.Replace(goSource, tt.old, tt.by, 1); err != nil || got != want || want == goSource {
			t.Errorf("%q by %q: %v\n%s", tt.old, tt.by, err, got)
		}
	}
}

// An edit that finds no place, or more than one, or does not fit there is refused, and the error names it.
func TestApplyRefusesWhatDoesNotFit(t *testing.T) {
	dir := sources(t, map[string]string{"a.go": goSource + "\nfunc f() { gg(); gg() }\n"})
	add, f := In(dir, "counter.add"), In(dir, "f")
	for _, edit := range []Edit{
		add.Drop("c.n += x\nreturn x"),      // the statements are not consecutive
		add.Replace("x + y", "x"),           // no such operator
		add.Replace("x = c.n", "x = 0"),     // x is declared there
		add.Replace("x := c.m", "x := 0"),   // another field, though its name is a letter
		add.Replace("f.Println(1)", "f"),    // another argument
		add.Replace("f.Println(s...)", "f"), // the argument is not spread
		add.Replace("x == x", "true"),       // no such comparison
		add.Replace("x < x", "true"),        // two texts
		In(dir, "twice").Drop("c.add(x, y)\nc.add(y, z)"),
		add.Begin("_ = $2"),                 // the parameter has no name
		add.Begin("_ = $9"),                 // no such parameter
		In(dir, "twice").Begin("_ = $recv"), // it is not a method
		In(dir, "twice").Begin("_ = $r1"),   // it has no result
		In(dir, "limit").Replace("$1", "2"), // it is not a function
		In(dir, "kinds").Begin("_ = 1"),
		In(dir, "h").Drop("gg()"), // there is no h
		In("nowhere", "f").Drop("gg()"),
		f.Drop("hh()"),
		f.Drop("gg()"), // two places
		f.Drop("gg("),
		f.Set("1"), // it is not a constant
		f.All().Replace("gg()", "gg("),
		f.InStrings("a", "b"),
		Append(filepath.Dir(dir), "a directory"),
		Rule("no such rule").True(),
	} {
		if changed, err := Apply([]Edit{edit}); err == nil || !strings.Contains(err.Error(), edit.name) {
			t.Errorf("%s: %v, and\n%s", edit.name, err, changed)
		}
	}
}

// A package that is no longer used stays imported. A package that is newly used is imported as in other files of
// the package. So code can be moved to another file.
func TestImportsFollow(t *testing.T) {
	dir := sources(t, map[string]string{
		"a.go": "package a\n\nimport \"fmt\"\n\nfunc f() { fmt.Print(1); g() }\n",
		"b.go": "package a\n\nimport (\n\tclock \"time\"\n\trand \"math/rand/v2\"\n)\n\nvar _, _ = clock.Now, rand.Int\n",
	})
	for want, edit := range map[string]Edit{
		"import _ \"fmt\"":                   In(dir, "f").Drop("fmt.Print(x)"),
		"import \"fmt\"":                     In(dir, "f").Replace("g()", "fmt.Print(2)"),
		"package a; import clock \"time\"\n": In(dir, "f").Replace("g()", "clock.Sleep(1)"),
	} {
		changed, err := Apply([]Edit{edit})
		if got := changed[filepath.Join(dir, "a.go")]; err != nil || !strings.Contains(got, want) {
			t.Errorf("%v, and no %s in\n%s", err, want, got)
		}
	}
}

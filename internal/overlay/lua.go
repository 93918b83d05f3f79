package overlay

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/internal/lua"
)

// A Line is a line of the scripts. It is found by its mark: a comment at its end that names the rule
// which the line keeps.
//
//	if found == ARGV[1] -- rule: a record is replaced by what was built on it
//
// An edit of the line depends only on Redis's own language, and on KEYS and ARGV.
type Line struct {
	rule string
	all  bool
}

// parts is the directory with the parts that scripts include.
const parts = "internal/lua"

// Rule returns the line that keeps a rule.
func Rule(rule string) Line { return Line{rule: rule} }

// All returns all lines that keep the rule, instead of the only one.
func (l Line) All() Line {
	l.all = true
	return l
}

// True makes the line's condition true, or the line's part of a condition.
func (l Line) True() Edit { return l.condition(func(string) string { return "true" }) }

// False makes the condition false.
//
// The condition is no constant: gopher-lua makes wrong code of "if false then return end" in a loop.
func (l Line) False() Edit { return l.condition(func(string) string { return "not ARGV" }) }

// Or makes the condition true also if text is true.
func (l Line) Or(text string) Edit {
	return l.condition(func(c string) string { return "(" + text + " or " + c + ")" })
}

// And makes the condition false unless text is true.
func (l Line) And(text string) Edit {
	return l.condition(func(c string) string { return "(" + text + " and " + c + ")" })
}

// Drop removes the line.
func (l Line) Drop() Edit {
	return l.edit(func(string) (string, error) { return "", nil })
}

// Before puts a line before it.
func (l Line) Before(text string) Edit {
	return l.edit(func(code string) (string, error) { return text + "\n" + code, nil })
}

// After puts a line behind it.
func (l Line) After(text string) Edit {
	return l.edit(func(code string) (string, error) { return code + "\n" + text, nil })
}

// Swap replaces a word of Redis's language, a number or an operator, but not a name.
func (l Line) Swap(old, by string) Edit {
	return l.edit(func(code string) (string, error) {
		switch n := strings.Count(code, old); {
		case luaName.MatchString(old):
			return "", fmt.Errorf("%s is a name, which may change", old)
		case n != 1:
			return "", fmt.Errorf("it has %s %d times", old, n)
		}
		return strings.Replace(code, old, by, 1), nil
	})
}

// Call replaces a call. The pattern gives its function and arguments, in which a single lower-case letter
// stands for any function or argument.
func (l Line) Call(pattern, by string) Edit {
	return l.edit(func(code string) (string, error) { return replaceCall(code, pattern, by) })
}

var (
	luaName = regexp.MustCompile(`^[A-Za-z_]\w*$`)
	mark    = regexp.MustCompile(`\s*-- rule: (.*)$`)
	clause  = regexp.MustCompile(`^(\s*(?:(?:if|elseif|while|and|or|return|local \w+ =)\s+))(.*?)(\s+(?:then|do))?$`)
)

// condition changes the condition of a line, or the value that it sets or returns.
func (l Line) condition(change func(string) string) Edit {
	return l.edit(func(code string) (string, error) {
		at := clause.FindStringSubmatch(code)
		if at == nil || strings.Count(at[2], "(") != strings.Count(at[2], ")") {
			return "", errors.New("it has no whole condition")
		}
		return at[1] + change(at[2]) + at[3], nil
	})
}

// edit makes an edit from a change of the line's code.
func (l Line) edit(change func(code string) (string, error)) Edit {
	return Edit{"rule: " + l.rule, func(t *tree) error {
		found := 0
		for _, dir := range append([]string{parts}, lua.Dirs...) {
			files, err := t.files(dir, ".lua")
			if err != nil {
				return err
			}
			for _, file := range files {
				n, err := l.changeIn(t, file, change)
				if found += n; err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
		}
		if found == 0 || found > 1 && !l.all {
			return fmt.Errorf("%d lines of the scripts have this mark", found)
		}
		return nil
	}}
}

// changeIn changes the lines of a file, and returns how many there are.
func (l Line) changeIn(t *tree, file string, change func(string) (string, error)) (found int, _ error) {
	text, err := t.read(file)
	if err != nil {
		return 0, err
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		at := mark.FindStringSubmatchIndex(line)
		if at == nil || line[at[2]:at[3]] != l.rule {
			continue
		}
		found++
		code, err := change(line[:at[0]])
		if err != nil {
			return found, err
		}
		if code != "" {
			code += line[at[0]:]
		}
		lines[i] = code
	}
	if found > 0 {
		t.changed[file] = strings.Join(lines, "\n")
	}
	return found, nil
}

// renderScripts renders the scripts as Redis runs them, if one of their sources has changed.
func (t *tree) renderScripts() error {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(t.changed)), func(file string) bool { return filepath.Ext(file) == ".lua" }) {
		return nil
	}
	included := make(map[string]string)
	err := t.each(parts, func(file, text string) error {
		included[lua.Name(file)] = text
		return nil
	})
	for _, dir := range lua.Dirs {
		if err == nil {
			err = t.each(dir, func(file, text string) error { return t.render(file, text, included) })
		}
	}
	return err
}

// render renders a script as Redis runs it.
func (t *tree) render(file, script string, included map[string]string) error {
	golden := filepath.Join(filepath.Dir(file), "golden", filepath.Base(file))
	text, err := lua.Whole(script, included)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if before, err := t.read(golden); err != nil || string(before) != text {
		t.changed[golden] = text
	}
	return nil
}

// each calls do with each Lua file of a directory.
func (t *tree) each(dir string, do func(file, text string) error) error {
	files, err := t.files(dir, ".lua")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := t.read(file)
		if err == nil {
			err = do(file, string(text))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

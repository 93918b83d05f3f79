package overlay

import (
	"fmt"
	"regexp"
	"strings"
)

// A luaCall is a call in a line of Lua.
type luaCall struct {
	from, to int
	function string
	args     []string
}

var (
	calling   = regexp.MustCompile(`[A-Za-z_][\w.]*\(`)
	luaLetter = regexp.MustCompile(`'[^']*'|\b[a-z]\b`)
)

// replaceCall replaces the call that a pattern matches. Exactly one must match.
func replaceCall(code, pattern, by string) (string, error) {
	wanted := calls(pattern)
	if len(wanted) == 0 {
		return "", fmt.Errorf("%s is no call", pattern)
	}
	var found []luaCall
	var bound map[string]string
	for _, call := range calls(code) {
		if letters := wanted[0].match(call); letters != nil {
			found, bound = append(found, call), letters
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d calls match %s", len(found), pattern)
	}
	text := luaLetter.ReplaceAllStringFunc(by, func(word string) string {
		if of, ok := bound[word]; ok {
			return of
		}
		return word
	})
	return code[:found[0].from] + text + code[found[0].to:], nil
}

// calls returns all calls in a line, including nested ones.
func calls(code string) (found []luaCall) {
	for _, at := range calling.FindAllStringIndex(code, -1) {
		if args, length, ok := arguments(code[at[1]:]); ok {
			found = append(found, luaCall{at[0], at[1] + length, code[at[0] : at[1]-1], args})
		}
	}
	return found
}

// arguments splits the text up to the bracket that closes the call.
func arguments(code string) (args []string, length int, ok bool) {
	depth, quoted, from := 0, false, 0
	for i, c := range code {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(' || c == '{' || c == '[':
			depth++
		case c == ')' && depth == 0:
			return append(args, strings.TrimSpace(code[from:i])), i + 1, true
		case c == ')' || c == '}' || c == ']':
			depth--
		case c == ',' && depth == 0:
			args, from = append(args, strings.TrimSpace(code[from:i])), i+1
		}
	}
	return nil, 0, false
}

// match returns the values of the pattern's letters in a call, or nil.
func (p luaCall) match(call luaCall) map[string]string {
	bound := make(map[string]string)
	if len(p.args) != len(call.args) {
		return nil
	}
	for i, word := range append([]string{p.function}, p.args...) {
		other := append([]string{call.function}, call.args...)[i]
		switch {
		case !letter.MatchString(word):
			if word != other {
				return nil
			}
		case bound[word] != "" && bound[word] != other:
			return nil
		default:
			bound[word] = other
		}
	}
	return bound
}

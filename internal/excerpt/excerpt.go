// Package excerpt makes texts that others have chosen fit for an error or a line of a log: keys, ids,
// users, devices, labels.
package excerpt

import (
	"unicode"
	"unicode/utf8"
)

// Most is the size in bytes of the longest excerpt.
const Most = 128

// Of returns s, or its beginning and … where it is longer than Most. What cannot be printed is replaced.
func Of(s string) string {
	const cut = "…"
	if len(s) > Most {
		return Printable(s, Most-len(cut)) + cut
	}
	return Printable(s, Most)
}

// Printable returns s, or its beginning, of most bytes at most. What cannot be printed is replaced.
func Printable(s string, most int) string {
	if len(s) <= most && isPlain(s) {
		return s
	}
	b := make([]byte, 0, most)
	for _, r := range s {
		if !unicode.IsPrint(r) {
			r = unicode.ReplacementChar
		}
		if len(b)+utf8.RuneLen(r) > most {
			break
		}
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}

// isPlain reports whether s is printable ASCII, as nearly all are.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

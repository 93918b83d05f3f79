// Package excerpt makes texts that others have chosen fit for an error or a line of a log: keys, IDs,
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

// Label returns a label, or the name of a host, as waiters are told it: long enough for a route, short enough for every
// command.
func Label(s string) string { return Printable(s, maxLabel) }

const maxLabel = 64 // bytes

// Printable returns s, or its beginning, of most bytes at most. What cannot be printed is replaced.
func Printable(s string, most int) string {
	plain := len(s) <= most
	for i := 0; plain && i < len(s); i++ {
		plain = ' ' <= s[i] && s[i] <= '~' // printable ASCII, as nearly all is
	}
	if plain {
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

//go:build !go1.27

package values

import "bytes"

// replaced reports whether the encoder replaced invalid UTF-8. Up to Go 1.26 the encoder writes the escape \ufffd
// only for invalid UTF-8: it writes a real U+FFFD unescaped, and a backslash in the text as two. A json.Marshaler
// that writes the escape most likely got it from the encoder, so its escape counts, too.
func replaced(_ any, raw []byte) bool {
	escape := []byte(`\ufffd`)
	before, after, found := bytes.Cut(raw, escape)
	for ; found; before, after, found = bytes.Cut(after, escape) {
		backslashes := len(before) - len(bytes.TrimRight(before, `\`))
		if backslashes%2 == 0 {
			return true
		}
	}
	return false
}

package main

import "strings"

// The number of characters in a public ID: of a guest's session, or of the two parts of a user's session,
// which are the user's tag and its own.
const (
	idLength  = 22
	tagLength = 16
	ownLength = 11
)

// isID reports whether s can be the public ID of a session.
func isID(s string) bool {
	if tag, own, bound := strings.Cut(s, "."); bound {
		return isTag(tag) && len(own) == ownLength && isBase64(own)
	}
	return len(s) == idLength && isBase64(s) && strings.IndexByte("AQgw", s[idLength-1]) >= 0 // 16 bytes leave 4 bits
}

// isTag reports whether s can be the tag of a user.
func isTag(s string) bool { return len(s) == tagLength && isBase64(s) }

func isBase64(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_'
	})
}

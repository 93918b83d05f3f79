package middleware

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/internal/secret"
)

// # The ID of a session
//
// A session's public ID is derived from the secret in its cookie. After Session.Login the ID has two
// parts, of which the first is a tag that stands for the user; see internal/records/user.go. The cookie
// then has the 12 bytes of the tag and the secret, under one signature.

// A cookieKey is the part of a cookie that opens a session.
type cookieKey struct {
	tag    []byte // of the user; empty if no user is logged in
	secret secret.Secret
}

// The sizes in bytes.
const (
	tagSize    = 12
	secretSize = 32
)

// raw returns the bytes that a cookie signs.
func (k cookieKey) raw() []byte { return append(slices.Clip(k.tag), k.secret.Bytes()...) }

// publicID returns the public ID: without a tag, the secret's ID; with a tag, the tag and the first half of the
// secret's ID, which is 66 bits. If a user has a million sessions, two have the same ID with a probability of
// 10^-8, and a new session never takes the place of another. SECURITY.md says what an attacker with a signing
// key could do.
func (k cookieKey) publicID() string { return tagged(k.tag, k.secret.ID()) }

func tagged(tag []byte, id string) string {
	if len(tag) == 0 {
		return id
	}
	text := make([]byte, 0, 28)
	text = base64.RawURLEncoding.AppendEncode(text, tag)
	text = append(text, '.')
	return string(append(text, id[:len(id)/2]...))
}

// idOfRaw returns the public ID for the bytes that a cookie has signed, or "".
func idOfRaw(raw []byte) string {
	var tag []byte
	if len(raw) == tagSize+secretSize {
		tag, raw = raw[:tagSize], raw[tagSize:]
	}
	id, err := secret.IDOf(raw)
	if err != nil {
		return ""
	}
	return tagged(tag, id)
}

// isID reports whether id can be a session's public ID: 16 bytes in base64url; or a user's tag, a dot, and
// the first half of 16 bytes in base64url.
func isID(id string) bool {
	tag, own, ofUser := strings.Cut(id, ".")
	if ofUser {
		return isBase64(tag, tagSize) && isBase64(own+"AAAAAAAAAAA", 16)
	}
	return isBase64(id, 16)
}

// isOfUser reports whether a public ID has a user's tag.
func isOfUser(id string) bool { return strings.Contains(id, ".") }

// isBase64 reports whether s is the base64url of size bytes, in the form in which we write it.
func isBase64(s string, size int) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(b) == size && len(s) == base64.RawURLEncoding.EncodedLen(size) // no line breaks
}

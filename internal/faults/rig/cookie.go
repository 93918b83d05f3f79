package rig

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
)

// tagSize is how many bytes of a user's cookie stand for the user.
const tagSize = 12

// RecordKey returns the key of the record that a cookie, name=value, opens. Only tests may read a cookie
// like this: it is signed, and contains the secret.
func RecordKey(tb testing.TB, cookie string) string {
	tb.Helper()
	_, value, _ := strings.Cut(cookie, "=")
	signed, err := base64.URLEncoding.DecodeString(value)
	if err != nil {
		tb.Fatal(err)
	}
	parts := strings.Split(string(signed), "|") // the time, the secret, the signature
	if len(parts) < 3 {
		tb.Fatalf("the cookie has %d parts", len(parts))
	}
	raw, err := base64.URLEncoding.DecodeString(parts[1])
	if err != nil || len(raw) != sha256.Size && len(raw) != tagSize+sha256.Size {
		tb.Fatalf("what is signed has %d bytes, %v", len(raw), err)
	}
	tag, secret := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	sum := sha256.Sum256(secret)
	id := base64.RawURLEncoding.EncodeToString(sum[:16])
	if len(tag) == 0 {
		return "latchkey:{" + id + "}"
	}
	return "latchkey:{" + base64.RawURLEncoding.EncodeToString(tag) + "}:" + id[:len(id)/2]
}

package rig

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
)

// RecordKey returns the key of the record that a cookie, name=value, opens. Only tests may
// look into a cookie like this: it is signed, and contains the secret.
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
	secret, err := base64.URLEncoding.DecodeString(parts[1])
	if err != nil || len(secret) != sha256.Size {
		tb.Fatalf("the secret has %d bytes, %v", len(secret), err)
	}
	id := sha256.Sum256(secret)
	return "latchkey:{" + base64.RawURLEncoding.EncodeToString(id[:16]) + "}"
}

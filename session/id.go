package session

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// A Secret is what a visitor proves to own a session with: 256 random bits,
// which exist in the visitor's cookie and nowhere else. Stores and logs only
// ever see its [Secret.ID].
//
// Every way of printing a Secret prints its public id instead.
type Secret struct{ bits [sha256.Size]byte }

// NewSecret returns a new random secret.
func NewSecret() Secret {
	var s Secret
	_, _ = rand.Read(s.bits[:]) // never fails: crypto/rand ends the program first
	return s
}

// ParseSecret returns the secret that [Secret.Bytes] gave out. The error never
// tells what was passed.
func ParseSecret(b []byte) (Secret, error) {
	var s Secret
	if len(b) != len(s.bits) {
		return s, errors.New("session: a secret has 32 bytes")
	}
	copy(s.bits[:], b)
	return s, nil
}

// Bytes returns the secret itself: for the cookie, and for nothing else.
func (s Secret) Bytes() []byte { return s.bits[:] }

// ID returns the public id: the secret's SHA-256 as 64 hexadecimal digits. It
// names the session without giving access to it.
func (s Secret) ID() string {
	sum := sha256.Sum256(s.bits[:])
	return hex.EncodeToString(sum[:])
}

// Format writes the public id, whatever the verb: %x or %#v would otherwise
// reach the bits.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.ID()) }

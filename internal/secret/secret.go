// Package secret holds what a visitor proves to own a session with, and derives
// the session's public ID from it.
package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
)

// A Secret is 256 random bits, which exist in the visitor's cookie and nowhere
// else. Stores and logs only ever see its [Secret.ID].
//
// Printing a Secret prints its public ID; where fmt does not ask the Secret, as
// in an unexported field, it finds an address and not the bits. Secrets cannot
// be compared with ==; compare their IDs.
type Secret struct {
	reveal func() [sha256.Size]byte // a closure, since printers cannot look into one
}

// New returns a new random secret.
func New() Secret {
	var bits [sha256.Size]byte
	_, _ = rand.Read(bits[:]) // never fails: crypto/rand ends the program first
	return Secret{func() [sha256.Size]byte { return bits }}
}

// Parse returns the secret whose [Secret.Bytes] are b. Its error does not repeat b.
func Parse(b []byte) (Secret, error) {
	if len(b) != sha256.Size {
		return Secret{}, errSize
	}
	bits := [sha256.Size]byte(b)
	return Secret{func() [sha256.Size]byte { return bits }}, nil
}

var errSize = errors.New("secret: a secret has 32 bytes")

// Bytes returns the secret itself: for the cookie, and for nothing else.
func (s Secret) Bytes() []byte {
	var bits [sha256.Size]byte // those of the zero Secret
	if s.reveal != nil {
		bits = s.reveal()
	}
	return bits[:]
}

// ID returns the public ID: the first 128 bits of the secret's SHA-256, as 22 characters of
// base64url. It names the session without giving access to it. Half of the hash is enough: of a
// billion random secrets two have the same ID with a probability of 10^-21. Only who has a signing key
// can choose a secret, and to find one with a given ID takes 2^128 hashes. (For a session of a user,
// of whose ID package middleware takes the first half, it takes 2^66: see SECURITY.md there.)
func (s Secret) ID() string {
	id, _ := IDOf(s.Bytes()) // which has the right size
	return id
}

// IDOf returns the ID of the secret whose [Secret.Bytes] are b, and makes no copy of them. Its
// error does not repeat b.
func IDOf(b []byte) (string, error) {
	if len(b) != sha256.Size {
		return "", errSize
	}
	sum := sha256.Sum256(b)
	var text [22]byte
	base64.RawURLEncoding.Encode(text[:], sum[:16])
	return string(text[:]), nil
}

// Format writes the public ID, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.ID()) }

package scripting

import (
	"crypto/rand"
	"encoding/binary"
)

// Chance returns a number in [0, 1). It comes from crypto/rand, which tests can seed, so
// that a simulation of many processes can be repeated exactly.
func Chance() float64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program first
	return float64(binary.LittleEndian.Uint64(b[:])>>11) / (1 << 53)
}

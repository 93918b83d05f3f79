package secret_test

import (
	"math/bits"
	"testing"
	"testing/cryptotest"

	"github.com/a2139e8d/latchkey/internal/secret"
)

// A secret consists of nothing but bytes of crypto/rand: if those repeat, so do the secrets. This test cannot run
// in parallel with others, since it replaces all randomness.
func TestSecretsComeFromCryptoRand(t *testing.T) {
	secrets := func(seed uint64) (ids [3]string) {
		cryptotest.SetGlobalRandom(t, seed)
		for i := range ids {
			ids[i] = secret.New().ID()
		}
		return ids
	}
	first, again, other := secrets(1), secrets(1), secrets(2)
	if first != again {
		t.Errorf("a secret has more than bytes of crypto/rand: %v, then %v", first, again)
	}
	for i := range first {
		if first[i] == other[i] || first[i] == first[(i+1)%3] {
			t.Errorf("a secret does not depend on crypto/rand: %v, %v", first, other)
		}
	}
}

// All 256 bits are random: each is set in about half of the secrets, and differs from each other bit in about
// half of them.
func TestAllBitsOfASecretAreRandom(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 3) // so that chance cannot fail the test
	const secrets = 1024
	var columns [256][secrets / 64]uint64 // each bit of all secrets
	for n := range secrets {
		b := secret.New().Bytes()
		if len(b) != 32 {
			t.Fatalf("%d bytes", len(b))
		}
		for i := range columns {
			columns[i][n/64] |= uint64(b[i/8]>>(i%8)&1) << (n % 64)
		}
	}
	const half, deviation = secrets / 2, 16
	random := func(column [secrets / 64]uint64) bool {
		n := 0
		for _, word := range column {
			n += bits.OnesCount64(word)
		}
		return n > half-6*deviation && n < half+6*deviation
	}
	for i, one := range columns {
		if !random(one) {
			t.Errorf("bit %d is not random", i)
		}
		for j := range i {
			difference := one
			for k, word := range columns[j] {
				difference[k] ^= word
			}
			if !random(difference) {
				t.Errorf("bits %d and %d depend on each other", i, j)
			}
		}
	}
}

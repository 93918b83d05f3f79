package middleware

import (
	"bytes"
	"crypto/hmac"
	"math"
	"testing"
	"time"
)

// If the time of an answer revealed how much of a signature is right, an attacker could
// guess one byte by byte. That time depends on:
//
//   - the cookie's length and form, which its sender knows;
//   - the number of keys that are tried, which is no secret: a visitor sees from the
//     time whether the own cookie was signed with the newest;
//   - the comparison of the signature with the right one. That is what is tested here;
//   - after a right signature, Redis, which looks for the SHA-256 of the secret: to find
//     a record that begins like another visitor's, an attacker would have to make secrets
//     until the hash fits, and have them signed.
//
// On 32 bytes the difference is a few nanoseconds, which drown in the noise. So the test
// lets the code compare longer signatures, and starts the clock as the comparison begins.

// wide is how many bytes the signatures have here.
const wide = 1 << 16

// A wideHash is a hash with wide sums, all of them zero.
type wideHash struct {
	summed *time.Time // when the last sum was made
}

func (*wideHash) Write(p []byte) (int, error) { return len(p), nil }
func (*wideHash) Reset()                      {}
func (*wideHash) Size() int                   { return wide }
func (*wideHash) BlockSize() int              { return 64 }

func (h *wideHash) Sum(b []byte) []byte {
	b = append(b, make([]byte, wide)...)
	*h.summed = time.Now()
	return b
}

// A verifier reports whether a signature is genuine, and how long it compared.
type verifier func(signature []byte) (genuine bool, took time.Duration)

// ours is the verifier of the cookies, with the wide hash in place of SHA-256.
func ours() verifier {
	var summed time.Time
	k := newChecker("sid", nil, 0)
	return func(signature []byte) (bool, time.Duration) {
		_, _, genuine := k.open(&wideHash{&summed}, append([]byte("1|c2VjcmV0|"), signature...))
		return genuine, time.Since(summed)
	}
}

// comparing is a verifier that does nothing but compare.
func comparing(equal func(a, b []byte) bool) verifier {
	var summed time.Time
	h := &wideHash{&summed}
	return func(signature []byte) (bool, time.Duration) {
		genuine := equal(h.Sum(nil), signature)
		return genuine, time.Since(summed)
	}
}

// byteByByte is how not to do it.
func byteByByte(a, b []byte) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// blockByBlock is how bytes.Equal does it, which is no better. (Under the race detector
// it reads both in full before it compares, so it does not serve here.)
func blockByBlock(a, b []byte) bool {
	for ; len(a) > 0; a, b = a[32:], b[32:] {
		if !bytes.Equal(a[:32], b[:32]) {
			return false
		}
	}
	return true
}

// leak returns how many times as long a verifier takes for a forgery whose last byte
// is wrong as for one whose first is. The two take turns, and the shortest of many
// tries counts, since a busy machine can make a try longer but not shorter.
func leak(t *testing.T, verify verifier) float64 {
	t.Helper()
	genuine := make([]byte, wide)
	if ok, _ := verify(genuine); !ok {
		t.Fatal("the genuine signature is refused")
	}
	took := map[int]time.Duration{0: math.MaxInt64, wide - 1: math.MaxInt64}
	for range 25 {
		for at, shortest := range took {
			forged := bytes.Clone(genuine)
			forged[at] = 1
			ok, d := verify(forged)
			if ok {
				t.Fatal("a forged signature is taken")
			}
			took[at] = min(shortest, d)
		}
	}
	return float64(took[wide-1]) / float64(max(1, took[0]))
}

// The time for a forged signature does not reveal where it is wrong. If it did, the test
// would notice, as it does with comparisons that stop at the first difference.
func TestTheComparisonOfSignaturesLeaksNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		verify verifier
		leaks  bool
	}{
		{"ours", ours(), false},
		{"hmac.Equal", comparing(hmac.Equal), false},
		{"byte by byte", comparing(byteByByte), true},
		{"block by block", comparing(blockByBlock), true},
	} {
		// Those that leak are far above 100, the others within some percent of 1.
		got := leak(t, c.verify)
		t.Logf("%s: a forgery that is right up to its last byte takes %.2f times as long", c.name, got)
		if (got > 4) != c.leaks {
			t.Errorf("%s: does it leak? want %v", c.name, c.leaks)
		}
	}
}

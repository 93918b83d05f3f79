package middleware

import (
	"bytes"
	"math"
	"testing"
	"time"
)

// wide is how many bytes the signatures have here. On 32 bytes the difference would be a few
// nanoseconds, which drown in the noise.
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

// The time for a forged signature does not reveal where it is wrong, or an attacker could guess one
// byte by byte. A comparison that stops at the first difference takes more than a hundred times as
// long for the last byte as for the first. The two take turns, and the shortest of many tries counts:
// a busy machine can make a try longer but not shorter.
func TestTheComparisonOfSignaturesLeaksNothing(t *testing.T) {
	t.Parallel()
	var summed time.Time
	k := newChecker("sid", nil, 0)
	verify := func(signature []byte) (genuine bool, took time.Duration) {
		_, _, genuine = k.open(&wideHash{&summed}, append([]byte("1|c2VjcmV0|"), signature...))
		return genuine, time.Since(summed)
	}
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
	if last, first := took[wide-1], took[0]; last > 10*first {
		t.Errorf("a forgery takes %v if its last byte is wrong, and %v if its first is", last, first)
	}
}

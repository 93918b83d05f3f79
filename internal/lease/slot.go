package lease

import (
	"strconv"
	"strings"
	"sync"
)

// On a cluster what belongs to a key must be in its slot. The slot is chosen by what stands in the
// first braces of a key, its hash tag, or by the whole key where that has none.

const slots = 1 << 14

// HashTag returns a hash tag, without its braces, that is in the slot of key: its own or, where it has
// none, the key itself. A key with a brace in the wrong place can be no tag: there it is a number.
func HashTag(key string) (tag string, own bool) {
	tag = hashed(key)
	if own = tag != key; !own && (tag == "" || strings.Contains(tag, "}")) {
		tag = numberIn(slot(tag))
	}
	return tag, own
}

// hashed returns the part of a key that chooses its slot.
func hashed(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			return tag
		}
	}
	return key
}

// slot is CRC16 of what is hashed, as the specification of Redis Cluster has it.
func slot(hashed string) int {
	var crc uint16
	for i := range len(hashed) {
		crc ^= uint16(hashed[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}

// numberIn returns the least number that is in a slot.
func numberIn(slot int) string { return strconv.Itoa(numbers()[slot]) }

var numbers = sync.OnceValue(func() []int {
	found, missing := make([]int, slots), slots
	for n := 1; missing > 0; n++ {
		if s := slot(strconv.Itoa(n)); found[s] == 0 {
			found[s] = n
			missing--
		}
	}
	return found
})

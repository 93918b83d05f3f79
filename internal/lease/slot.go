package lease

import (
	"strconv"
	"strings"
	"sync"
)

// On a cluster, all keys of one lock must be in one slot. The slot of a key follows from its hash tag, the text in its
// first braces. If it has no hash tag, the slot follows from the whole key.

// Slots is how many there are.
const Slots = 1 << 14

// Slot returns the slot of a key.
func Slot(key string) int { return slot(hashed(key)) }

// HashTag returns a hash tag, without its braces, that is in the slot of key: the tag of key or, if key has none, key
// itself. If key has a brace in the wrong place, it can be no tag, and the tag is a number.
func HashTag(key string) (tag string, own bool) {
	tag = hashed(key)
	own = tag != key
	if !own && (tag == "" || strings.Contains(tag, "}")) {
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

// slot is CRC16, as the specification of Redis Cluster defines it.
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
	return int(crc) % Slots
}

// numberIn returns the least number that is in a slot.
func numberIn(slot int) string { return strconv.Itoa(numbers()[slot]) }

var numbers = sync.OnceValue(func() []int {
	found, missing := make([]int, Slots), Slots
	for n := 1; missing > 0; n++ {
		if s := slot(strconv.Itoa(n)); found[s] == 0 {
			found[s] = n
			missing--
		}
	}
	return found
})

package model

import "hash/maphash"

// A seen is the states that were met, each once, by numbers from 0 on. It is a map from
// states to numbers that keeps the states in a slice only.
type seen struct {
	states []state
	slots  []int32 // a number + 1, or 0; their number is a power of two
	seed   maphash.Seed
}

func newSeen() *seen { return &seen{slots: make([]int32, 1<<16), seed: maphash.MakeSeed()} }

// forget makes x empty, and keeps its memory.
func (x *seen) forget() {
	x.states = x.states[:0]
	clear(x.slots)
}

// add returns the number of s, and whether it is new.
func (x *seen) add(s *state) (id int32, isNew bool) {
	if 2*len(x.states) >= len(x.slots) {
		x.grow()
	}
	at := x.find(s)
	if *at != 0 {
		return *at - 1, false
	}
	x.states = append(x.states, *s)
	*at = int32(len(x.states))
	return *at - 1, true
}

// find returns the slot of s, or the one where it is to be.
func (x *seen) find(s *state) *int32 {
	mask := uint64(len(x.slots) - 1)
	for i := maphash.Comparable(x.seed, *s) & mask; ; i = (i + 1) & mask {
		if slot := &x.slots[i]; *slot == 0 || x.states[*slot-1] == *s {
			return slot
		}
	}
}

func (x *seen) grow() {
	x.slots = make([]int32, 2*len(x.slots))
	for i := range x.states {
		*x.find(&x.states[i]) = int32(i) + 1
	}
}

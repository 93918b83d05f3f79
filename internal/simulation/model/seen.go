package model

import "hash/maphash"

// A Seen has the states that were met, each once, with numbers from 0. It is a map from states to numbers
// that stores the states only in a slice.
type Seen[S comparable] struct {
	States []S
	slots  []int32 // a number + 1, or 0; their number is a power of two
	seed   maphash.Seed
}

// NewSeen returns an empty Seen.
func NewSeen[S comparable]() *Seen[S] {
	return &Seen[S]{slots: make([]int32, 1<<16), seed: maphash.MakeSeed()}
}

// Forget makes x empty, but keeps its memory.
func (x *Seen[S]) Forget() {
	x.States = x.States[:0]
	clear(x.slots)
}

// Add returns the number of s, and whether it is new.
func (x *Seen[S]) Add(s *S) (id int32, isNew bool) {
	if 2*len(x.States) >= len(x.slots) {
		x.grow()
	}
	at := x.find(s)
	if *at != 0 {
		return *at - 1, false
	}
	x.States = append(x.States, *s)
	*at = int32(len(x.States))
	return *at - 1, true
}

// find returns the slot of s, or the slot in which it belongs.
func (x *Seen[S]) find(s *S) *int32 {
	mask := uint64(len(x.slots) - 1)
	for i := maphash.Comparable(x.seed, *s) & mask; ; i = (i + 1) & mask {
		if slot := &x.slots[i]; *slot == 0 || x.States[*slot-1] == *s {
			return slot
		}
	}
}

func (x *Seen[S]) grow() {
	x.slots = make([]int32, 2*len(x.slots))
	for i := range x.States {
		*x.find(&x.States[i]) = int32(i) + 1
	}
}

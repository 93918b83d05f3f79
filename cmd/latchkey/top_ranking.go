package main

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"
)

const (
	// window is how many looks count: those of about the last minute.
	window = 60
	// knownAtMost is how many sessions that are not held a look asks for at most.
	knownAtMost = 500
)

// A busy is a session that was held in the last looks.
type busy struct {
	Busy  float64 `json:"busy"`  // the share of the looks in which it was held
	Looks int     `json:"looks"` // that count, at most window
	State string  `json:"state"` // held, free, or unknown, as its master is away
	holder

	node             string // its master
	lookedIn, heldIn uint64 // a bit for each look, the last one lowest: the session was looked at, and was held
	found            int    // the look that found it last
}

// A ranking remembers which sessions were held in the last looks. A session that was found is looked up by its key in
// the following looks, and not only by SCAN, which misses most of the short holds.
type ranking struct {
	looks int
	known map[string]*busy
	times []time.Time // of the last looks
}

const allLooks uint64 = 1<<window - 1

// find notes that a session was found on a node, during a look.
func (r *ranking) find(id string, node string) {
	b := r.known[id]
	if b == nil {
		// It was not found by the looks before.
		b = &busy{holder: holder{Session: id}, lookedIn: 1<<min(r.looks, window) - 1}
		r.known[id] = b
	}
	b.node, b.found = node, r.looks
}

// add adds a look. looked reports whether the look has reached a session, and held has the holders that it has found.
func (r *ranking) add(held []holder, looked func(b *busy) bool, now time.Time) {
	r.times = append(r.times[max(0, len(r.times)-window+1):], now)
	r.looks++
	for _, b := range r.known {
		b.lookedIn, b.heldIn = b.lookedIn<<1&allLooks, b.heldIn<<1&allLooks
		b.State = "unknown"
		if looked(b) {
			b.lookedIn |= 1
			b.State, b.Held, b.Lease, b.Endless, b.Waiting, b.Passing = "free", 0, 0, false, 0, false
		}
	}
	for _, h := range held {
		if b := r.known[h.Session]; b != nil && b.State == "free" {
			if h.Passing {
				h.Process, h.Request = b.Process, b.Request // the last that is known
			}
			b.holder, b.State, b.heldIn, b.found = h, "held", b.heldIn|1, r.looks
		}
	}
	for id, b := range r.known {
		if b.Looks = bits.OnesCount64(b.lookedIn); b.Looks > 0 {
			b.Busy = float64(bits.OnesCount64(b.heldIn)) / float64(b.Looks)
		}
		if b.heldIn == 0 && r.looks-b.found >= window {
			delete(r.known, id)
		}
	}
	r.forget()
}

// forget leaves all sessions that are held, and as many others as can be looked up. Of sessions that are equally busy chance
// decides, and not the order of their IDs: a session that is often held is soon found again, and then stays.
func (r *ranking) forget() {
	var others []*busy
	for _, b := range r.known { // in random order
		if b.heldIn&1 == 0 {
			others = append(others, b)
		}
	}
	if len(others) <= knownAtMost {
		return
	}
	slices.SortStableFunc(others, compareBusy)
	for _, b := range others[knownAtMost:] {
		delete(r.known, b.Session)
	}
}

// busiest returns the sessions that were held in the last looks.
func (r *ranking) busiest() []*busy {
	list := []*busy{}
	for _, b := range r.known {
		if b.heldIn != 0 {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b *busy) int { return cmp.Or(compareBusy(a, b), strings.Compare(a.Session, b.Session)) })
	return list
}

// compareBusy puts the busiest session first. Of equally busy sessions the one with most waiters comes first.
func compareBusy(a, b *busy) int {
	return cmp.Or(cmp.Compare(b.Busy, a.Busy), b.Waiting-a.Waiting, cmp.Compare(b.heldIn&1, a.heldIn&1), cmp.Compare(b.Held, a.Held))
}

// period returns how many looks count, and in what time they were.
func (r *ranking) period() (looks int, d time.Duration) {
	return len(r.times), r.times[len(r.times)-1].Sub(r.times[0])
}

package middleware

import (
	"sync"
	"time"
)

// deadIDs remembers IDs whose sessions were found to have ended or expired. A dead member's cookie stays in its
// browser, beside the guest's cookie that counts from then on: without this memory each request would ask Redis
// for both. An ID that is dead stays dead, and a process that remembers too little only asks again.
//
// There are two generations of IDs, so that the oldest can be dropped without a clock for each.
type deadIDs struct {
	mu           sync.Mutex // guards the rest
	young, older map[string]struct{}
	since        time.Time // when young began
}

const (
	deadFor  = time.Minute // an ID is remembered for at least this long, unless a generation is full
	deadMost = 2048        // IDs in a generation
)

func (d *deadIDs) known(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.age()
	_, young := d.young[id]
	_, older := d.older[id]
	return young || older
}

func (d *deadIDs) add(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.age()
	if d.young == nil {
		d.young = make(map[string]struct{})
	}
	d.young[id] = struct{}{}
}

// age begins a new generation if it is time, or if the young one is full. It is called with mu held.
func (d *deadIDs) age() {
	now := time.Now()
	switch {
	case now.Sub(d.since) >= 2*deadFor:
		d.young, d.older, d.since = nil, nil, now
	case now.Sub(d.since) >= deadFor, len(d.young) >= deadMost:
		d.young, d.older, d.since = nil, d.young, now
	}
}

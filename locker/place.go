package locker

import (
	"strconv"
	"strings"
)

// A place is where one caller stands for its process in the queue of a key. It is
// used by one goroutine.
type place struct {
	bell *bell
	name string        // chosen when it is first used
	tail string        // of name
	rung chan struct{} // gets a value when the turn has come, or may have
}

// isPlace tells the value of a lock that is being given to a place from that of
// one that is held.
func isPlace(value string) bool {
	return strings.HasPrefix(strings.TrimPrefix(value, "-"), channelPrefix)
}

// place returns a new place, which must leave.
func (b *bell) place() *place {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made++
	p := &place{bell: b, tail: "/" + strconv.Itoa(b.made), rung: make(chan struct{}, 1)}
	b.places[p.tail] = p
	if b.idle != nil {
		b.idle.Stop()
	}
	b.subscribe()
	return p
}

// leave is the end of a place, which is in no queue any more.
func (p *place) leave() {
	b := p.bell
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.places, p.tail)
	b.rest()
}

// ready returns a channel that is closed when it is known whether the place will be
// told.
func (p *place) ready() <-chan struct{} {
	b := p.bell
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready
}

// settled reports whether that is known by now, or takes too long.
func (p *place) settled() bool {
	b := p.bell
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscribe()
	return b.ear != nil || b.deaf()
}

// told reports whether the place will be told when its turn has come. Otherwise
// it has to ask.
func (p *place) told() bool {
	b := p.bell
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscribe()
	return b.ear != nil && !strings.HasPrefix(p.name, "-")
}

// choose returns the name of the place. It changes, once, if what the bell needs is
// gone and cannot be had again: whoever gave the lock to the old one would find
// that it is not heard, and pass it over for ever.
func (p *place) choose() string {
	b := p.bell
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscribe()
	switch {
	case strings.HasPrefix(p.name, "-"):
	case b.deaf():
		p.name = "-" + b.channel + p.tail
	default:
		p.name = b.channel + p.tail
	}
	return p.name
}

func (p *place) ring() {
	select {
	case p.rung <- struct{}{}:
	default: // it has not looked yet
	}
}

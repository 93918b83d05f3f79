package locker

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// A place is where a process stands in the queue of a key. It belongs to all callers of
// the process that wait for the key: the first in line uses it, and one that gives up
// leaves it to the next. So a process keeps its turn however impatient its callers are.
// It is used by whoever has the turn in line.
type place struct {
	bell    *bell
	relay   Relay
	key     string
	options Options       // of whoever made it
	name    string        // chosen when it is first used
	number  int           // of all that the process has had
	tail    string        // of name
	queued  bool          // it was in the queue after the last try
	doubt   bool          // a reply was lost, so it may be there, or get there, all the same
	rung    chan struct{} // gets a value when the turn has come, or may have
}

// isPlace tells the value of a lock that is being given to a place from that of
// one that is held.
func isPlace(value string) bool {
	return strings.HasPrefix(strings.TrimPrefix(value, "-"), channelPrefix)
}

// newPlace returns a place of l's process, which must leave or quit.
func newPlace(r Relay, l *Lease) *place {
	p := r.doorbell().place()
	p.relay, p.key, p.options = r, l.key, l.options
	return p
}

// quit takes p out of the queue, if it is there, and is its end. It keeps the caller no
// longer than for most. Without a place it does nothing.
func (p *place) quit(most time.Duration) {
	if p == nil {
		return
	}
	defer p.leave()
	if p.name != "" {
		p.options.sweep(most, p.doubt, func(ctx context.Context) bool { return p.relay.Quit(ctx, p.key, p.name) == nil })
	}
}

// quitLater is quit where the caller has no time.
func (p *place) quitLater() {
	if p != nil {
		time.AfterFunc(0, func() { p.quit(p.options.Timeout) })
	}
}

// place returns a new place, which must leave.
func (b *bell) place() *place {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made++
	p := &place{bell: b, number: b.made, tail: "/" + strconv.Itoa(b.made), rung: make(chan struct{}, 1)}
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

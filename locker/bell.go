package locker

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"time"
)

// channelPrefix begins the name of every channel.
const channelPrefix = "latchkey:wake:"

const (
	// linger is how long a subscription outlasts the last one that waits: in a
	// crowd, the next one comes soon.
	linger = 200 * time.Millisecond
	// deafness is how long nobody tries to subscribe again after it failed.
	deafness = 5 * time.Second
	// setup is the longest time to wait for a subscription.
	setup = 2 * time.Second
)

// A bell tells the callers of one process when their turn has come. It is one
// subscription to a channel of its own, for all keys, on one connection, which
// exists only while somebody waits, and is not one of the pool: whoever holds
// a lock needs those to release it.
//
// A goroutine listens to it. It ends with the connection, which is closed when
// nobody has waited for a moment, or when Redis has not told what it should have.
type bell struct {
	client  Client
	channel string

	mu       sync.Mutex // guards all below
	places   map[string]*place
	made     int           // places, ever
	ear      Subscription  // nil while there is none
	starting bool          // listen is about to set ear
	ready    chan struct{} // closed when it has
	retry    time.Time     // not to be tried before
	idle     *time.Timer   // closes an ear that nobody needs
}

// A place is where one caller stands for its process in the queue of a key. It is
// used by one goroutine.
type place struct {
	bell *bell
	name string        // chosen when it is first used
	tail string        // of name
	rung chan struct{} // gets a value when the turn has come, or may have
}

func newBell(c Client) *bell {
	return &bell{client: c, channel: channelPrefix + rand.Text(), places: make(map[string]*place)}
}

// isPlace tells the value of a lock that is being given to a place from that of
// one that is held.
func isPlace(value string) bool {
	return strings.HasPrefix(strings.TrimPrefix(value, "-"), channelPrefix)
}

// listening reports whether a place would be told at once.
func (b *bell) listening() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ear != nil
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

// leave is the end of a place.
func (p *place) leave() {
	b := p.bell
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.places, p.tail)
	b.rest()
}

// rest is called with mu held, when there may be nobody left to listen for.
func (b *bell) rest() {
	if len(b.places) == 0 && b.ear != nil {
		b.idle = time.AfterFunc(linger, b.close)
	}
}

// close closes an ear that nobody needs.
func (b *bell) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.places) == 0 && b.ear != nil {
		_ = b.ear.Close() // listen ends
	}
}

// distrust closes an ear that has not heard what it should have. Places that are
// rung then try again.
func (b *bell) distrust() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ear != nil {
		_ = b.ear.Close() // listen ends
	}
}

// ready returns a channel that is closed when it is known whether the place will be
// told.
func (p *place) ready() <-chan struct{} {
	b := p.bell
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready
}

// settled reports whether it is known.
func (p *place) settled() bool {
	b := p.bell
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.starting
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

// choose gives the place its name. A place that has been in a queue keeps it.
func (p *place) choose() string {
	b := p.bell
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.name == "" {
		p.name = b.channel + p.tail
		if b.ear == nil {
			p.name = "-" + p.name
		}
	}
	return p.name
}

// subscribe is called with mu held.
func (b *bell) subscribe() {
	if b.ear == nil && !b.starting && !time.Now().Before(b.retry) {
		b.starting, b.ready = true, make(chan struct{})
		go b.listen()
	}
}

// listen is the goroutine of one subscription.
func (b *bell) listen() {
	ctx, cancel := context.WithTimeout(context.Background(), setup)
	ear, err := b.client.Subscribe(ctx, b.channel)
	cancel()
	b.mu.Lock()
	if err != nil {
		b.retry = time.Now().Add(deafness)
	} else {
		b.ear = ear
	}
	b.starting = false
	close(b.ready)
	b.rest()
	b.mu.Unlock()
	if err != nil {
		return
	}

	for err == nil {
		var name string
		if name, err = ear.Receive(); err == nil {
			b.ring(name)
		}
	}
	_ = ear.Close() // it has ended

	b.mu.Lock()
	defer b.mu.Unlock()
	b.ear = nil
	for _, p := range b.places { // what they should have heard is not known
		p.ring()
	}
}

// ring tells a place that its turn has come.
func (b *bell) ring(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if tail, ours := strings.CutPrefix(name, b.channel); ours && b.places[tail] != nil {
		b.places[tail].ring()
	}
}

func (p *place) ring() {
	select {
	case p.rung <- struct{}{}:
	default: // it has not looked yet
	}
}

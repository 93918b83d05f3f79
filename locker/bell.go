package locker

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
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
	ear      *ear          // nil while there is none
	starting time.Time     // since when listen is about to set ear; zero: it is not
	ready    chan struct{} // closed when it has
	retry    time.Time     // not to be tried before
	idle     *time.Timer   // drops an ear that nobody needs
}

// An ear is the subscription of a bell.
type ear struct {
	Subscription
	heard bool // anything at all; guarded by the bell's mu
}

func newBell(c Client) *bell {
	return &bell{client: c, channel: channelPrefix + rand.Text(), places: make(map[string]*place)}
}

// listening reports whether a place would be told at once.
func (b *bell) listening() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ear != nil
}

// rest is called with mu held, when there may be nobody left to listen for.
func (b *bell) rest() {
	if len(b.places) == 0 && b.ear != nil {
		b.idle = time.AfterFunc(linger, b.quieten)
	}
}

// quieten closes an ear that nobody needs.
func (b *bell) quieten() {
	b.mu.Lock()
	var ear *ear
	if len(b.places) == 0 {
		ear, b.ear = b.ear, nil
	}
	b.mu.Unlock()
	ear.end()
}

// distrust closes an ear that has not heard what it should have.
func (b *bell) distrust() {
	b.mu.Lock()
	ear := b.ear
	b.lose(ear)
	b.mu.Unlock()
	ear.end()
}

// lose is called with mu held, when ear is no good any more. Where it has never
// heard anything, there is little hope for the next one.
func (b *bell) lose(ear *ear) {
	if ear != nil && ear == b.ear {
		b.ear = nil
		if !ear.heard {
			b.retry = time.Now().Add(deafness)
		}
	}
}

// end makes listen end. It may take a while, so it is called without mu.
func (e *ear) end() {
	if e != nil {
		_ = e.Close()
	}
}

// deaf reports whether there will be no ear for a while. It is called with mu held.
func (b *bell) deaf() bool {
	return b.ear == nil && (b.starting.IsZero() || time.Since(b.starting) > setup)
}

// subscribe is called with mu held.
func (b *bell) subscribe() {
	if b.ear == nil && b.starting.IsZero() && !time.Now().Before(b.retry) {
		b.starting, b.ready = time.Now(), make(chan struct{})
		go b.listen()
	}
}

// listen is the goroutine of one subscription.
func (b *bell) listen() {
	ctx, cancel := context.WithTimeout(context.Background(), setup)
	s, err := b.client.Subscribe(ctx, b.channel)
	cancel()
	ear := &ear{Subscription: s}
	b.mu.Lock()
	if err != nil {
		b.retry = time.Now().Add(deafness)
	} else {
		b.ear = ear
	}
	b.starting = time.Time{}
	close(b.ready)
	b.rest()
	b.mu.Unlock()
	if err != nil {
		return
	}

	for err == nil {
		var name string
		if name, err = ear.Receive(); err == nil {
			b.ring(ear, name)
		}
	}
	ear.end()

	b.mu.Lock()
	defer b.mu.Unlock()
	b.lose(ear)
	// What they should have heard is not known. First come, first told.
	for _, p := range slices.SortedFunc(maps.Values(b.places), func(p, q *place) int { return cmp.Compare(p.number, q.number) }) {
		p.ring()
	}
}

// ring tells a place that its turn has come.
func (b *bell) ring(ear *ear, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ear.heard = true
	if tail, ours := strings.CutPrefix(name, b.channel); ours && b.places[tail] != nil {
		b.places[tail].ring()
	}
}

package lease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

// fakeEars is a Redis that can publish, and nothing else.
type fakeEars struct {
	mu         sync.Mutex // guards all below
	open       []*fakeEar
	subscribed int
	takes      time.Duration // to subscribe
	denied     bool
	lossy      bool // messages count as heard, but get lost
}

type fakeEar struct {
	ears    *fakeEars
	channel string
	heard   chan string
	closed  chan struct{}
}

func (e *fakeEars) Subscribe(_ context.Context, channel string) (scripting.Subscription, error) {
	e.mu.Lock()
	e.subscribed++
	takes := e.takes
	e.mu.Unlock()
	time.Sleep(takes)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.denied {
		return nil, errRefused
	}
	ear := &fakeEar{e, channel, make(chan string, 10), make(chan struct{})}
	e.open = append(e.open, ear)
	return ear, nil
}

func (e *fakeEars) publish(place string) (heard int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ear := range e.open {
		if ear.channel == place[:strings.LastIndex(place, "/")] {
			heard++
			if !e.lossy {
				ear.heard <- place
			}
		}
	}
	return heard
}

func (e *fakeEar) Receive() (string, error) {
	select {
	case m := <-e.heard:
		return m, nil
	case <-e.closed:
		return "", errors.New("closed")
	}
}

func (e *fakeEar) Close() error {
	e.ears.mu.Lock()
	defer e.ears.mu.Unlock()
	if i := slices.Index(e.ears.open, e); i >= 0 {
		e.ears.open = slices.Delete(e.ears.open, i, i+1)
		close(e.closed)
	}
	return nil
}

// set changes how subscribing goes from now on.
func (e *fakeEars) set(change func(e *fakeEars)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e)
}

// cut breaks all connections.
func (e *fakeEars) cut() {
	for _, ear := range e.listeners() {
		ear.Close()
	}
}

func (e *fakeEars) listeners() []*fakeEar {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.open)
}

// asked is how often a subscription was asked for.
func (e *fakeEars) asked() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.subscribed
}

package middleware

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
)

// A backlog is the queue of one observer, which one goroutine serves. It takes the events that belong to no request, and
// those of a request that are not kept until the request is done. The goroutine begins with the first event and ends
// after the last. So an observer that blocks costs at most one goroutine, and the memory of maxBacklog events.
type backlog struct {
	observer Observer
	sessions *Sessions // the first to tell this observer; for its log

	mu      sync.Mutex // guards the rest. It is locked last
	events  []told
	running bool
	dropped int
}

type told struct {
	ctx   context.Context
	event Event
}

const maxBacklog = 1 << 16

// Exchanged and Noticed implement records.Observer.
func (b *backlog) Exchanged(ctx context.Context, x records.Exchange) {
	e := ExchangeEvent(x)
	b.add(ctx, &e)
}
func (b *backlog) Noticed(ctx context.Context, n *records.Notice) { b.add(ctx, (*SessionEvent)(n)) }

// add takes an event, and does not wait for the observer.
func (b *backlog) add(ctx context.Context, e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.events) == maxBacklog {
		b.dropped++
		return
	}
	b.events = append(b.events, told{ctx, e})
	if !b.running {
		b.running = true
		go b.run()
	}
}

// run tells all events.
func (b *backlog) run() {
	ended := false
	defer func() { // also if the observer calls runtime.Goexit
		if !ended {
			go b.run()
		}
	}()
	for {
		next, ok, dropped := b.next()
		if dropped > 0 {
			b.sessions.logMissed(dropped)
		}
		if !ok {
			ended = true
			return
		}
		b.sessions.tell(context.WithoutCancel(next.ctx), []Event{next.event}, []*backlog{b})
	}
}

// next takes the first event. If there is none, the goroutine ends.
func (b *backlog) next() (next told, ok bool, dropped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	dropped, b.dropped = b.dropped, 0
	if len(b.events) == 0 {
		b.events, b.running = nil, false
		return told{}, false, dropped
	}
	next = b.events[0]
	b.events[0] = told{}
	b.events = b.events[1:]
	return next, true, dropped
}

// tell tells observers of events: of each event all observers, before the next. If an observer panics, that is logged,
// and the rest is told. If it calls runtime.Goexit, the rest is told while the goroutine ends, deeper on its stack.
func (s *Sessions) tell(ctx context.Context, events []Event, to []*backlog) {
	s.tellFrom(ctx, 0, events, to)
}

// tellFrom begins with the given call of Observe. Calls are counted from 0.
func (s *Sessions) tellFrom(ctx context.Context, call int, events []Event, to []*backlog) {
	for call < len(events)*len(to) {
		call = s.tellUntilPanic(ctx, call, events, to)
	}
}

// tellUntilPanic returns the number of the call after the last one that it has made.
func (s *Sessions) tellUntilPanic(ctx context.Context, from int, events []Event, to []*backlog) (call int) {
	call, exits := from, true
	defer func() {
		if v := recover(); v != nil {
			s.logObserver("an observer has panicked", slog.Any("panic", v),
				slog.String("observer", fmt.Sprintf("%T", to[(call-1)%len(to)].observer)), slog.String("stack", string(debug.Stack())))
		} else if exits {
			s.tellFrom(ctx, call, events, to)
		}
	}()
	o := call % len(to)
	for _, e := range events[call/len(to):] {
		for ; o < len(to); o++ {
			call++
			to[o].observer.Observe(ctx, e)
		}
		o = 0
	}
	exits = false
	return call
}

func (s *Sessions) logObserver(message string, attrs ...slog.Attr) {
	defer func() { _ = recover() }() // a panic of the Logger must not end the process
	s.logLine(context.Background(), slog.LevelError, "observer", message, func() []slog.Attr {
		return append([]slog.Attr{slog.String("kind", "observer")}, attrs...)
	})
}

// logMissed logs that an observer has missed events. A line that is left out adds its events to the next line.
func (s *Sessions) logMissed(events int) {
	defer func() { _ = recover() }() // as above
	if before, ok := s.damper.pass("missed", events, time.Now()); ok {
		cmp.Or(s.options.Logger, slog.Default()).LogAttrs(context.Background(), slog.LevelError,
			"latchkey: an observer is too slow, and misses events", slog.String("kind", "observer"), slog.Int("events", before+events))
	}
}

// observeStore makes the observers known to the store. One that is there twice is told once.
func (s *Sessions) observeStore(observers []Observer) {
	for _, o := range observers {
		if o == nil || slices.ContainsFunc(s.backlogs, func(b *backlog) bool { return records.Same(b.observer, o) }) {
			continue
		}
		b := &backlog{observer: o, sessions: s}
		s.backlogs = append(s.backlogs, b)
		s.store.Observe(o, b)
		if a, ok := o.(interface{ Attach(*Sessions) }); ok {
			a.Attach(s)
		}
	}
}

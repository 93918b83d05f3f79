package lease

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fakeQueue is a Queue in memory: one Redis, as one process sees it.
type fakeQueue struct {
	*fake
	site      *fakeSite
	notifiers *Notifiers

	// Each is called in place of a method, as in fake.
	queue func(ctx context.Context, n int, do func() (Attempt, error)) (Attempt, error)
	quit  func(n int, do func() error) error
	pass  func(n int, do func() (bool, error)) (bool, error)
}

// A fakeSite is what the relays of several processes share.
type fakeSite struct {
	fake
	pubsub fakePubSub

	mu     sync.Mutex // guards the queues; before that of fake
	queues map[string][]string
}

func newFakeSite(t *testing.T) *fakeSite {
	s := &fakeSite{queues: make(map[string][]string)}
	t.Cleanup(func() {
		if len(s.queues) != 0 {
			t.Errorf("left in the queues: %q", s.queues)
		}
	})
	return s
}

// process returns what one process has.
func (s *fakeSite) process() *fakeQueue {
	return &fakeQueue{fake: &s.fake, site: s, notifiers: NewNotifiers(&s.pubsub)}
}

// group returns callers of this process.
func (f *fakeQueue) group() *Group { return &Group{Notifiers: f.notifiers} }

func (f *fakeQueue) Take(ctx context.Context, key, token, place string, lease time.Duration) (Attempt, error) {
	if place == "" {
		return f.fake.Take(ctx, key, token, "", lease)
	}
	n := f.Record("Queue", key, token, lease)
	do := func() (Attempt, error) { return f.site.queue(key, token, place, lease), nil }
	if f.queue != nil {
		return f.queue(ctx, n, do)
	}
	return do()
}

func (s *fakeSite) queue(key, token, place string, lease time.Duration) Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch holder := s.Holder(key); holder {
	case "":
		s.leaveLocked(key, place)
		fallthrough
	case token, place:
		s.Put(key, token, lease)
		return Attempt{Taken: true}
	default:
		found := Attempt{Holder: holder, Left: s.Left(key), Queued: true}
		if !slices.Contains(s.queues[key], place) {
			found.Joined = true
			s.queues[key] = append(s.queues[key], place)
		}
		return found
	}
}

func (f *fakeQueue) Quit(_ context.Context, key, place string) error {
	n := f.Record("Quit", key, place, 0)
	do := func() error {
		f.site.mu.Lock()
		defer f.site.mu.Unlock()
		f.site.leaveLocked(key, place)
		if f.site.Holder(key) == place {
			f.site.freeLocked(key)
		}
		return nil
	}
	if f.quit != nil {
		return f.quit(n, do)
	}
	return do()
}

func (f *fakeQueue) Release(ctx context.Context, key, token string, after time.Duration) error {
	f.site.mu.Lock()
	defer f.site.mu.Unlock()
	err := f.fake.Release(ctx, key, token, after)
	if err == nil && after == 0 {
		f.site.freeLocked(key)
	}
	return err
}

func (f *fakeQueue) Pass(_ context.Context, key, from, to string, lease time.Duration) (others bool, err error) {
	n := f.Record("Pass", key, to, lease)
	do := func() (bool, error) {
		f.site.mu.Lock()
		defer f.site.mu.Unlock()
		switch f.Holder(key) {
		case from, to:
			f.Put(key, to, lease)
			return len(f.site.queues[key]) > 0, nil
		case "":
			return false, ErrExpired
		}
		return false, ErrLost
	}
	if f.pass != nil {
		return f.pass(n, do)
	}
	return do()
}

// freeLocked gives the lock to the first place that hears of it.
func (s *fakeSite) freeLocked(key string) {
	s.Put(key, "", 0)
	for len(s.queues[key]) > 0 {
		place := s.queues[key][0]
		s.leaveLocked(key, place)
		patience := 250 * time.Millisecond
		if !strings.HasPrefix(place, "-") {
			if patience = time.Second; s.pubsub.publish(place) == 0 {
				continue
			}
		}
		s.Put(key, place, patience)
		return
	}
}

func (s *fakeSite) leaveLocked(key, place string) {
	rest := slices.DeleteFunc(s.queues[key], func(p string) bool { return p == place })
	if s.queues[key] = rest; len(rest) == 0 {
		delete(s.queues, key)
	}
}

// inQueue returns the places that wait for key.
func (s *fakeSite) inQueue(key string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queues[key])
}

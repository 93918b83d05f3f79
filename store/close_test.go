package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// Close ends all that a store does, at once, also where the pool is the caller's: its
// subscription, and the wait of its requests. One that holds a session cannot save it any more.
func TestCloseEndsWhatTheStoreDoes(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	st, other := New(r.Pool(t, 4), patient), New(r.Pool(t, 4), patient)
	create(t, st, "0")
	if err := st.Create(t.Context(), newID, []byte("0"), Terms{}); err != nil {
		t.Fatal(err)
	}
	own, err := st.Take(t.Context(), newID, Terms{})
	if err != nil {
		t.Fatal(err)
	}
	h := take(t, other)
	failed := make(chan error, 2)
	for range cap(failed) {
		go func() {
			_, err := st.Take(t.Context(), theID, Terms{LockWait: patient.Lease})
			failed <- err
		}()
	}
	waitForLine(t, st, 1) // behind the one that waits at Redis
	listens := func() bool {
		channels, err := redis.Strings(r.Do(t, "PUBSUB", "CHANNELS"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(channels) > 0
	}
	eventually(t, "the store listens", listens)

	for range 2 {
		if err := st.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for range cap(failed) {
		wantClosed(t, "one that waited", <-failed)
	}
	eventually(t, "nobody listens", func() bool { return !listens() })
	wantError(t, "Save", own.Save(t.Context(), []byte("1")), ErrUnavailable)
	save(t, h, "1") // which is another store's
}

// What comes after Close is refused, and the error says why.
func TestAfterClose(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "0")
		st.Close()
		for name, use := range map[string]func(ctx context.Context) error{
			"Take":   func(ctx context.Context) error { _, err := st.Take(ctx, theID, Terms{}); return err },
			"Ping":   st.Ping,
			"Load":   func(ctx context.Context) error { _, err := st.Load(ctx, theID, Terms{}); return err },
			"Create": func(ctx context.Context) error { return st.Create(ctx, newID, []byte("0"), Terms{}) },
		} {
			begin := time.Now()
			wantClosed(t, name, use(t.Context()))
			if took := time.Since(begin); took > time.Second {
				t.Errorf("%s took %v", name, took)
			}
		}
		wantData(t, s, "0")
	})
}

func wantClosed(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "the store was closed") {
		t.Errorf("%s got %v", what, err)
	}
}

package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

func TestTakeAndSave(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, `{"n":1}`)
		h := take(t, st)
		if string(h.Record.Data) != `{"n":1}` {
			t.Errorf("Take read %q", h.Record.Data)
		}
		created := h.Record.Created
		if age := time.Since(created); age < 0 || age > time.Minute {
			t.Errorf("created at %v", created)
		}
		save(t, h, `{"n":2}`)
		wantData(t, s, `{"n":2}`)
		if got := take(t, st); !got.Record.Created.Equal(created) {
			t.Errorf("created %v, after Save %v", created, got.Record.Created)
		} else {
			got.Release(t.Context())
		}
	})
}

// The lock is the token of its holder, beside the record, while the session is
// held. Each way of giving it back removes it.
func TestLockKey(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		st := s.process(t)
		for name, giveBack := range map[string]func(h *Hold) error{
			"Save":    func(h *Hold) error { return h.Save(ctx, []byte("2")) },
			"Touch":   func(h *Hold) error { return h.Touch(ctx) },
			"Release": func(h *Hold) error { h.Release(ctx); return nil },
			"Renew":   func(h *Hold) error { return h.Renew(ctx, newID, []byte("2")) },
			"Destroy": func(h *Hold) error { return h.Destroy(ctx) },
		} {
			s.Do(t, "FLUSHALL")
			create(t, st, "1")
			h := take(t, st)
			if got, want := s.Keys(t), []string{theRecord, theLock}; !slices.Equal(got, want) {
				t.Errorf("%s: keys %q, want %q", name, got, want)
			}
			if token, _ := s.Get(t, theLock); !strings.HasPrefix(token, h.stamp+" ") {
				t.Errorf("%s: the lock is %q, the stamp %q", name, token, h.stamp)
			}
			wantExpiry(t, s.Server, theLock, patient.Lease)
			if err := giveBack(h); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			wantFree(t, s)
		}
	})
}

// A record expires with its idle time-out, or earlier with its absolute one.
func TestRecordExpires(t *testing.T) {
	t.Parallel()
	const idle, absolute = time.Hour, 10 * time.Hour
	terms := Terms{TTL: idle, Lifetime: absolute}
	for name, tt := range map[string]struct{ age, want time.Duration }{
		"young": {0, idle},
		"old":   {9*time.Hour + 30*time.Minute, 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachFence(t, func(t *testing.T, s *site) {
				ctx := t.Context()
				st := s.process(t)
				created := time.Now().Add(-tt.age)
				check := func(what string, f func(h *Hold) error) {
					t.Helper()
					// A minute from its end, the record is put off.
					s.Do(t, "SET", theRecord, formatRecord("A", created, []byte("1")), "PX", 60_000)
					h, err := st.Take(ctx, theID, terms)
					if err != nil {
						t.Fatal(err)
					}
					if err := f(h); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					wantExpiry(t, s.Server, theRecord, tt.want)
				}
				check("Save", func(h *Hold) error { return h.Save(ctx, []byte("2")) })
				check("Touch", func(h *Hold) error { return h.Touch(ctx) })
				check("Load", func(h *Hold) error {
					_, err := st.Load(ctx, theID, terms)
					h.Release(ctx)
					return err
				})
				if err := st.create(ctx, newID, "", Record{Data: []byte("1"), Created: created, name: "B"}, terms.withDefaults()); err != nil {
					t.Fatal(err)
				}
				wantExpiry(t, s.Server, newRecord, tt.want)
			})
		})
	}
}

// At the end of its lifetime a session is over, also where Redis still has it
// because the terms were longer when it was written.
func TestLifetimeIsOver(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		old := formatRecord("A", time.Now().Add(-time.Hour), []byte("1"))
		s.Do(t, "SET", theRecord, old, "PX", 60_000)
		terms := Terms{TTL: time.Minute, Lifetime: time.Hour}
		_, err := st.Take(t.Context(), theID, terms)
		wantError(t, "Take", err, ErrNotFound)
		_, err = st.Load(t.Context(), theID, terms)
		wantError(t, "Load", err, ErrNotFound)
		wantFree(t, s)
	})
}

// Redis keeps the idle time-out by itself.
func TestIdleSessionIsGone(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, s *redistest.Server) {
		st := New(s.Pool(t, 1), patient)
		err := st.Create(t.Context(), theID, []byte("1"), Terms{TTL: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the record expires", func() bool { return !s.Exists(t, theRecord) })
		_, err = st.Take(t.Context(), theID, Terms{})
		wantError(t, "Take", err, ErrNotFound)
	})
}

// An id that Redis does not know is neither locked nor stored: a forged one
// costs nothing and cannot be planted.
func TestUnknownIDLeavesNoTrace(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		_, err := st.Take(t.Context(), theID, Terms{})
		wantError(t, "Take", err, ErrNotFound)
		_, err = st.Load(t.Context(), theID, Terms{})
		wantError(t, "Load", err, ErrNotFound)
		if keys := append(s.Keys(t), s.locks.Keys(t)...); len(keys) != 0 {
			t.Errorf("there are keys %q", keys)
		}
	})
}

// Load sees what was last committed, also while another holds the session.
func TestLoadDoesNotWait(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "1")
		h := take(t, st)
		wantData(t, s, "1")
		save(t, h, "2")
		wantData(t, s, "2")
	})
}

func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		create(t, s.process(t), "1")
		h := take(t, s.process(t))
		defer h.Release(t.Context())
		for what, st := range map[string]*Store{"this process": h.store, "another process": s.process(t)} {
			begin := time.Now()
			_, err := st.Take(t.Context(), theID, Terms{LockWait: 30 * time.Millisecond})
			wantError(t, "Take in "+what, err, ErrTimeout)
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("Take in %s: it took %v", what, took)
			}

			gone := errors.New("the client went away")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(30*time.Millisecond, func() { cancel(gone) })
			_, err = st.Take(ctx, theID, Terms{LockWait: time.Hour})
			wantError(t, "Take in "+what, err, gone)
		}
	})
}

func TestTooManyWaiters(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "1")
		h := take(t, st)
		full := make(chan error, 4)
		for range 4 {
			go func() {
				next, err := st.Take(t.Context(), theID, Terms{LockWait: time.Minute, MaxWaiters: 3})
				if err != nil {
					full <- err // at once: the holder waits for it
					return
				}
				next.Release(t.Context())
				full <- nil
			}()
		}
		wantError(t, "the fourth", <-full, ErrTooManyWaiters)
		h.Release(t.Context())
		for range 3 {
			if err := <-full; err != nil {
				t.Error(err)
			}
		}
	})
}

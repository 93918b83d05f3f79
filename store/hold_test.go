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

// The lock is the token of its holder, beside the record, while the session is
// held. Each way of giving it back removes it.
func TestLockKey(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		ctx, st := t.Context(), process(t, s)
		for name, giveBack := range map[string]func(h *Hold) error{
			"Save":    func(h *Hold) error { return h.Save(ctx, []byte("2")) },
			"Touch":   func(h *Hold) error { return h.Touch(ctx) },
			"Release": func(h *Hold) error { h.Release(ctx); return nil },
			"Renew":   func(h *Hold) error { return h.Renew(ctx, newID, []byte("2")) },
			"Destroy": func(h *Hold) error { return h.Destroy(ctx) },
		} {
			s.Do(t, "FLUSHALL")
			create(t, st, "1")
			created := time.Now().Truncate(time.Millisecond)
			h := take(t, st)
			if !h.Record.Created.Equal(created) || string(h.Record.Data) != "1" {
				t.Errorf("%s: it read %+v", name, h.Record)
			}
			if got, want := s.Keys(t), []string{theRecord, theLock}; !slices.Equal(got, want) {
				t.Errorf("%s: keys %q, want %q", name, got, want)
			}
			if token, _ := s.Get(t, theLock); !strings.HasPrefix(token, h.stamp+" ") {
				t.Errorf("%s: the lock is %q, the stamp %q", name, token, h.stamp)
			}
			wantExpiry(t, s, theLock, patient.Lease)
			wantError(t, name, giveBack(h), nil)
			wantFree(t, s)
		}
	})
}

// P12: a record expires with its idle time-out, or earlier with its absolute one, to the millisecond.
// Whatever request comes puts the former off, and its end does so again.
func TestRecordExpires(t *testing.T) {
	t.Parallel()
	const idle, absolute = time.Hour, 10 * time.Hour
	terms := Terms{TTL: idle, Lifetime: absolute}
	for name, tt := range map[string]struct{ age, want time.Duration }{
		"young": {0, idle},
		"old":   {9*time.Hour + 30*time.Minute, 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, s *redistest.Server) {
				ctx, st := t.Context(), process(t, s)
				created := time.Now().Add(-tt.age)
				check := func(what string) {
					t.Helper()
					if got := expiry(t, s, theRecord); got != tt.want {
						t.Errorf("%s: it expires in %v, want %v", what, got, tt.want)
					}
					s.Do(t, "PEXPIRE", theRecord, 10_000) // nobody came for long
				}
				must(t, st.CreateRecord(ctx, theID, Record{Data: []byte("1"), Created: created}, terms))
				check("Create")
				for what, end := range map[string]func(h *Hold) error{
					"Save":    func(h *Hold) error { return h.Save(ctx, []byte("2")) },
					"Touch":   func(h *Hold) error { return h.Touch(ctx) },
					"Release": func(h *Hold) error { h.Release(ctx); return nil },
				} {
					h := takeBy(t, st, terms)
					check("Take")
					wantError(t, what, end(h), nil)
					check(what)
				}
				_, err := st.Load(ctx, theID, terms)
				wantError(t, "Load", err, nil)
				check("Load")
				lapse(10*time.Second + time.Millisecond)
				wantNotFound(t, s, st, terms)
			})
		})
	}
}

// wantNotFound checks that the session is unknown, and that nothing comes of asking for it: neither
// a lock nor a record. So an id that is forged costs nothing and cannot be planted.
func wantNotFound(t *testing.T, s *redistest.Server, st *Store, terms Terms) {
	t.Helper()
	before := s.Keys(t)
	_, err := st.Take(t.Context(), theID, terms)
	wantError(t, "Take", err, ErrNotFound)
	_, err = st.Load(t.Context(), theID, terms)
	wantError(t, "Load", err, ErrNotFound)
	if keys := s.Keys(t); !slices.Equal(keys, before) {
		t.Errorf("there are keys %q", keys)
	}
}

// P9: an id that Redis does not know takes no lock, and is not adopted.
func TestUnknownIDLeavesNoTrace(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) { wantNotFound(t, s, process(t, s), Terms{}) })
}

// At the end of its lifetime a session is over, also where Redis still has it
// because the terms were longer when it was written.
func TestLifetimeIsOver(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "1")
		terms := Terms{TTL: time.Minute, Lifetime: 20 * time.Minute}
		lapse(20*time.Minute - time.Millisecond)
		if _, err := st.Load(t.Context(), theID, terms); err != nil {
			t.Errorf("a millisecond before its end: %v", err)
		}
		s.Do(t, "PEXPIRE", theRecord, 60_000)
		lapse(time.Millisecond)
		wantNotFound(t, s, st, terms)
	})
}

// P5: who waits does so for LockWait and no longer, and one whose client goes away no longer than that.
func TestWaitingIsBounded(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "1")
		h := take(t, st)
		const wait = 10 * time.Second
		for what, st := range map[string]*Store{"this process": st, "another process": process(t, s)} {
			begun := time.Now()
			_, err := st.Take(t.Context(), theID, Terms{LockWait: wait})
			wantError(t, "Take in "+what, err, ErrTimeout)

			gone := errors.New("the client went away")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(wait, func() { cancel(gone) })
			_, err = st.Take(ctx, theID, Terms{LockWait: time.Hour})
			wantError(t, "Take in "+what, err, gone)
			if took := time.Since(begun); took != 2*wait {
				t.Errorf("in %s it took %v, want %v", what, took, 2*wait)
			}
			_, err = st.Take(ctx, theID, Terms{})
			wantError(t, "Take by a client that has gone", err, gone)
		}
		must(t, h.Save(t.Context(), []byte("2")))
		wantData(t, s, "2")
		wantFree(t, s)
	})
}

// P5: no more than MaxWaiters wait in a process. Those that do have their turn.
func TestTooManyWaiters(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "1")
		h := take(t, st)
		waiting := guests(t, st, 3, Terms{})
		_, err := st.Take(t.Context(), theID, Terms{LockWait: time.Minute, MaxWaiters: 3})
		wantError(t, "the fourth", err, ErrTooManyWaiters)
		h.Release(t.Context())
		for _, g := range waiting {
			g.holds(t, "1").Release(t.Context())
		}
	})
}

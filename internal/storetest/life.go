package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// live does everything that can happen to a session, as one process.
func (s *site) live(st *records.Engine) error {
	ctx := s.Context()
	much := strings.Repeat("much ", 10_000)
	var h *records.Hold
	taken := func(id, want string) (err error) {
		if h, _, err = st.Take(ctx, id, records.Terms{}); err == nil && string(h.Record.Data) != want {
			h.Release(ctx)
			err = fmt.Errorf("took %.20q, want %.20q", h.Record.Data, want)
		}
		return err
	}
	for i, step := range []func() error{
		func() error { return st.Create(ctx, theID, []byte("1"), records.Terms{}) },
		func() error {
			return mustBe(st.Create(ctx, theID, []byte("2"), records.Terms{}), store.ErrCorrupt)
		},
		func() error { return taken(theID, "1") },
		func() error { return h.Save(ctx, []byte("2")) },
		func() error { return taken(theID, "2") },
		func() error { return h.Touch(ctx) },
		func() error { _, err := st.Load(ctx, theID, records.Terms{}); return err },
		func() error { return taken(theID, "2") },
		func() error { return h.Save(ctx, []byte(much)) },
		func() error { return taken(theID, much) },
		func() error { return h.Renew(ctx, newID, []byte("3")) },
		func() error { return taken(newID, "3") },
		func() error { h.Release(ctx); return nil },
		func() error { return taken(newID, "3") },
		func() error { return h.Destroy(ctx) },
		func() error {
			_, err := st.Load(ctx, newID, records.Terms{})
			return mustBe(err, store.ErrGone)
		},
		func() error {
			_, _, err := st.Take(ctx, theID, records.Terms{})
			return mustBe(err, store.ErrGone)
		},
	} {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	if got, want := s.redis.Keys(s), []string{moved, record}; !slices.Equal(got, want) {
		return fmt.Errorf("in the end there are keys %q, want %q", got, want)
	}
	return nil
}

// A session is created, taken, saved, touched, loaded, renewed, released and destroyed.
func life(s *site) {
	if err := s.live(s.process(patient)); err != nil {
		s.Error(err)
	}
}

// If a connection breaks, nobody knows whether Redis did the work, so the command is repeated. Nothing fails,
// whichever command breaks it, and whether or not Redis has done the command.
func anyConnectionBreaks(s *site) {
	st, p := s.tapped(patient)
	// live returns how many commands and round trips of the store a life took. Late commands of a life count for
	// that life.
	live := func(fault redistest.Fault, at int64) (commands, exchanges int64, _ error) {
		var sent, begun atomic.Int64
		p.Inject(func(c redistest.Command) redistest.Fault {
			if !isStores(c) {
				return redistest.Pass
			}
			if begins(c) {
				begun.Add(1)
			}
			if sent.Add(1) == at {
				return fault
			}
			return redistest.Pass
		})
		defer p.Inject(nil)
		for _, key := range []string{record, moved, lock} { // in different slots
			s.redis.Do(s, "DEL", key)
		}
		err := s.live(st)
		return sent.Load(), begun.Load(), err
	}
	var all, most int64
	for range 2 { // in the first life, Redis gets the scripts
		commands, exchanges, err := live(redistest.Pass, 0)
		if err != nil {
			s.Fatal(err)
		}
		all, most = commands, exchanges+1
	}
	for name, fault := range map[string]redistest.Fault{
		"the reply is lost":   redistest.DropReply,
		"the reply is cut":    redistest.CutReply,
		"the command is lost": redistest.DropCommand,
	} {
		for n := int64(1); n <= all; n++ {
			_, exchanges, err := live(fault, n)
			if err != nil {
				s.Errorf("command %d of %d, %s: %v", n, all, name, err)
			}
			if exchanges > most {
				s.Errorf("command %d, %s: %d round trips, want at most one repetition: %d", n, name, exchanges, most)
			}
		}
	}
}

// Redis forgets the scripts at any time, and nothing fails.
func scriptFlush(s *site) {
	st := s.process(patient)
	s.create(st, "0")
	for range 3 {
		s.redis.Do(s, "SCRIPT", "FLUSH")
		h := s.take(st)
		s.redis.Do(s, "SCRIPT", "FLUSH")
		s.save(h, "1")
		s.redis.Do(s, "SCRIPT", "FLUSH")
		s.wantData("1")
	}
	s.wantFree()
}

// Records of any size up to MaxBytes and of any bytes come back as they were saved. A larger record is
// refused, and the one before stays.
func largeAndBinary(s *site) {
	st := s.process(patient)
	s.create(st, "1")
	for _, data := range []string{
		"\x00\x01\xfe\xff\r\n", `","gone":1}`, "$-1\r\n", strings.Repeat("x", 1<<16), strings.Repeat("y", records.DefaultMaxBytes-200),
	} {
		s.save(s.take(st), data)
		s.wantData(data)
	}
	s.save(s.take(st), "small")
	s.wantError("Save of too much", s.take(st).Save(s.Context(), make([]byte, records.DefaultMaxBytes)), store.ErrTooLarge)
	s.wantData("small")
	s.wantFree()
}

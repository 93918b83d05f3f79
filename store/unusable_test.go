package store

import (
	"strings"
	"testing"
	"time"
)

// A record that cannot be used is never a panic. Take reports it and holds its
// lock, so that the caller may replace it, leave it, or end it. Load reports it.
func TestUnusableRecords(t *testing.T) {
	t.Parallel()
	small := Terms{MaxBytes: 100}
	for name, tt := range map[string]struct {
		put  []any // the command that puts it there
		want error
	}{
		"empty":         {[]any{"SET", theRecord, ""}, ErrCorrupt},
		"garbage":       {[]any{"SET", theRecord, "\x00\xffgarbage"}, ErrCorrupt},
		"truncated":     {[]any{"SET", theRecord, `{"v":2,"s":"A","c":17`}, ErrCorrupt},
		"later version": {[]any{"SET", theRecord, `{"v":3,"s":"A","c":1,"d":{}}`}, ErrCorrupt},
		"a list":        {[]any{"LPUSH", theRecord, "x"}, ErrCorrupt},
		"too large": {[]any{"SET", theRecord,
			formatRecord("A", time.Now(), []byte(strings.Repeat("x", 100)))}, ErrTooLarge},
		"large garbage": {[]any{"SET", theRecord, strings.Repeat("x", 1000)}, ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachFence(t, func(t *testing.T, s *site) {
				ctx := t.Context()
				st := s.process(t)
				put := func() *Hold {
					t.Helper()
					s.Do(t, "FLUSHALL")
					s.Do(t, tt.put[0].(string), tt.put[1:]...)
					_, err := st.Load(ctx, theID, small)
					wantError(t, "Load", err, tt.want)
					h, err := st.Take(ctx, theID, small)
					wantError(t, "Take", err, tt.want)
					if h == nil {
						t.Fatal("Take gave no Hold")
					}
					if token, _ := s.locks.Get(t, theLock); token == "" {
						t.Error("Take left the session unlocked")
					}
					if h.Record.Data != nil || time.Since(h.Record.Created) > time.Minute {
						t.Errorf("Take read %+v", h.Record)
					}
					return h
				}

				save(t, put(), "new")
				wantData(t, s, "new")
				wantFree(t, s)

				if err := put().Destroy(ctx); err != nil {
					t.Errorf("Destroy: %v", err)
				}
				wantGone(t, s, st)

				put().Release(ctx)
				_, err := st.Load(ctx, theID, small)
				wantError(t, "Load after Release", err, tt.want)
				wantFree(t, s)

				if err := put().Touch(ctx); err != nil {
					t.Errorf("Touch: %v", err)
				}
				wantFree(t, s)

				// The fence holds for it, too.
				if s.locks == s.Server {
					h := put()
					s.Do(t, "DEL", theLock)
					wantError(t, "Save without the lock", h.Save(ctx, []byte("x")), ErrLost)
				}
				h := put()
				s.Do(t, "FLUSHALL")
				wantError(t, "Save after FLUSHALL", h.Save(ctx, []byte("x")), ErrLost)
				if keys := s.Keys(t); len(keys) != 0 {
					t.Errorf("keys %q", keys)
				}
			})
		})
	}
}

// What would be too large is refused whole, and nothing changes.
func TestSaveTooLarge(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		st := s.process(t)
		create(t, st, "small")
		room := 100 - len(formatRecord(strings.Repeat("A", stampLength), time.Now(), nil))
		fits, over := []byte(strings.Repeat("x", room)), []byte(strings.Repeat("x", room+1))
		terms := Terms{MaxBytes: 100}
		for what, write := range map[string]func(h *Hold) error{
			"Save":  func(h *Hold) error { return h.Save(ctx, over) },
			"Renew": func(h *Hold) error { return h.Renew(ctx, newID, over) },
		} {
			h, err := st.Take(ctx, theID, terms)
			if err != nil {
				t.Fatal(err)
			}
			wantError(t, what, write(h), ErrTooLarge)
			wantData(t, s, "small")
			wantFree(t, s)
		}
		wantError(t, "Create", st.Create(ctx, newID, over, terms), ErrTooLarge)
		eventually(t, "no record of the new id is left", func() bool { return !s.Exists(t, newRecord) })

		h, err := st.Take(ctx, theID, terms)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Save(ctx, fits); err != nil {
			t.Errorf("Save of exactly MaxBytes: %v", err)
		}
		if _, err := st.Load(ctx, theID, terms); err != nil {
			t.Errorf("Load of exactly MaxBytes: %v", err)
		}
		if h, err = st.Take(ctx, theID, terms); err != nil {
			t.Fatalf("Take of exactly MaxBytes: %v", err)
		}
		h.Release(ctx)
	})
}

// A session may be a megabyte, with the default terms.
func TestLargeRecord(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "1")
		large := strings.Repeat("0123456789abcdef", DefaultMaxBytes/16-8)
		save(t, take(t, st), large)
		h := take(t, st)
		if string(h.Record.Data) != large {
			t.Errorf("took %d bytes, want %d", len(h.Record.Data), len(large))
		}
		save(t, h, "2")
		wantData(t, s, "2")
	})
}

package records

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/gomodule/redigo/redis"
)

// A text is a Content.
type text string

func (c text) Size() int                { return len(c) }
func (c text) AppendTo(b []byte) []byte { return append(b, c...) }

// load reads the session without a lock.
func load(t *testing.T, st *Engine) Record {
	t.Helper()
	r, err := st.Load(t.Context(), theID, Terms{TTL: time.Hour})
	must(t, err)
	return r
}

// saveLoaded saves data, which must succeed.
func saveLoaded(t *testing.T, st *Engine, read Record, data string) {
	t.Helper()
	if _, err := st.SaveLoaded(t.Context(), theID, read, text(data), Terms{}); err != nil {
		t.Fatal(err)
	}
}

// A loaded session is saved in one round trip, whatever its size. Nothing else is left in Redis.
func TestSaveLoaded(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, p := tapped(t, s, patient)
		create(t, st, "0")
		for _, data := range []string{"1", large("2"), "3"} {
			read := load(t, st)
			p.Forget()
			saved, err := st.SaveLoaded(t.Context(), theID, read, text(data), Terms{TTL: 2 * time.Hour})
			if n := p.RoundTrips(); err != nil || n != 1 {
				t.Errorf("%v, in %d round trips", err, n)
			}
			wantData(t, s, data)
			wantExpiry(t, s, theRecord, 2*time.Hour)
			if now := load(t, st); !now.Same(saved) || now.Same(read) || !now.Created.Equal(read.Created) {
				t.Errorf("stored is %v, returned was %v, and loaded %v", now, saved, read)
			}
			if got := s.Keys(t); !slices.Equal(got, []string{theRecord}) {
				t.Errorf("the keys are %q", got)
			}
		}
	})
}

// P1: a save without a lock is refused if another request has written the record, holds the session, or waits for
// it. The record stays unchanged.
func TestSaveLoadedIsRefused(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st := process(t, s)
		for name, meanwhile := range map[string]func(read Record){
			"another has written":              func(Record) { save(t, take(t, st), "2") },
			"another has saved without a lock": func(read Record) { saveLoaded(t, st, read, "2") },
			"another has ended it":             func(Record) { _ = take(t, st).Destroy(t.Context()) },
			"the session has expired":          func(Record) { s.Do(t, "DEL", theRecord) },
			"the record has another type":      func(Record) { s.Do(t, "DEL", theRecord); s.Do(t, "LPUSH", theRecord, "x") },
			"another holds it":                 func(Record) { s.Do(t, "SET", theLock, "x", "PX", 60_000) },
			"a list is in the lock":            func(Record) { s.Do(t, "LPUSH", theLock, "x") },
			"it is the turn of a process":      func(Record) { s.Do(t, "SET", theLock, "latchkey:wake:p/1", "PX", 60_000) },
			"processes wait":                   func(Record) { s.Do(t, "SET", theQueue, "latchkey:wake:p/1 ", "PX", 60_000) },
		} {
			for _, data := range []string{"1", large("1")} {
				s.Do(t, "DEL", theRecord, theLock, theQueue)
				create(t, st, "0")
				read := load(t, st)
				meanwhile(read)
				before, keys := stored(t, s), s.Keys(t)
				_, err := st.SaveLoaded(t.Context(), theID, read, text(data), Terms{})
				if !errors.Is(err, ErrConflict) || errors.Is(err, ErrUnavailable) {
					t.Errorf("%s: %v", name, err)
				}
				if after := stored(t, s); after != before {
					t.Errorf("%s: the record was %s, and is %s", name, before, after)
				}
				if got := s.Keys(t); !slices.Equal(got, keys) {
					t.Errorf("%s: the keys were %q, and are %q", name, keys, got)
				}
			}
		}
	})
}

// stored returns what is at the record's key, or Redis's error if that is not a string.
func stored(t *testing.T, s *redistest.Server) string {
	t.Helper()
	c := s.Pool(t, 1).Get()
	defer c.Close()
	found, err := redis.String(c.Do("GET", theRecord))
	return fmt.Sprint(found, err)
}

// If the connection breaks, the write is repeated, but it is not done twice. If another request has written
// before the repetition, nobody knows whether the first try was done. The error says so.
func TestARepeatedWriteAfterAnotherWrote(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, p := tapped(t, s, patient)
		other := process(t, s)
		for name, tt := range map[string]struct {
			script *scripting.Script
			fault  redistest.Fault // of the first try
			locked bool
			err    error
			want   string
		}{
			"under the lock, done": {commitScript, redistest.DropReply, true, ErrLost, "1+2"},
			"without it, done":     {optimisticScript, redistest.DropReply, false, ErrConflict, "1+2"},
			"without it, not done": {optimisticScript, redistest.DropCommand, false, ErrConflict, "0+2"},
		} {
			s.Do(t, "DEL", theRecord)
			create(t, other, "0")
			write := func() error {
				_, err := st.SaveLoaded(t.Context(), theID, load(t, st), text("1"), Terms{})
				return err
			}
			if tt.locked {
				h := take(t, st)
				write = func() error { return h.Save(t.Context(), []byte("1")) }
			}
			tries := 0
			p.Inject(func(cmd redistest.Command) redistest.Fault {
				if !runs(cmd, tt.script) {
					return redistest.Pass
				}
				if tries++; tries == 1 {
					return tt.fault
				}
				h := take(t, other)
				save(t, h, string(h.Record.Data)+"+2")
				return redistest.Pass
			})
			if err := write(); !errors.Is(err, tt.err) || !errors.Is(err, ErrUnavailable) || tries != 2 {
				t.Errorf("%s: after %d tries: %v", name, tries, err)
			}
			p.Inject(nil)
			wantData(t, s, tt.want)
		}
	})
}

// A record that cannot be saved is refused before anything is sent.
func TestSaveLoadedRefusesWhatCannotBeSaved(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "0")
		read := load(t, st)
		_, err := st.SaveLoaded(t.Context(), theID, read, text(large("")), Terms{MaxBytes: stagedFrom})
		wantError(t, "a record that is too large", err, ErrTooLarge)
		_, err = st.SaveLoaded(t.Context(), theID, Record{}, text("1"), Terms{})
		wantError(t, "over a record that was not loaded", err, ErrConflict)
		wantData(t, s, "0")
		if (Record{}).Same(Record{}) {
			t.Error("two zero records count as the same")
		}
	})
}

// A session that is saved without a lock keeps its own timeouts, and is sealed like one that is
// saved under a lock.
func TestSaveLoadedKeepsOwnTimesAndSeals(t *testing.T) {
	t.Parallel()
	terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		for name, tt := range ownTimes {
			for _, o := range []Options{patient, encrypted(newKey)} {
				st := onPool(s.Pool(t, 8), o)
				r := recordOf(tt.idle, tt.until, tt.age)
				s.Do(t, "SET", theRecord, r.text(st.box(theID)), "PX", 60_000)
				read, err := st.Load(t.Context(), theID, terms)
				wantError(t, "Load", err, nil)
				s.Do(t, "PEXPIRE", theRecord, 60_000)
				_, err = st.SaveLoaded(t.Context(), theID, read, text("2 and more"), terms)
				wantError(t, "SaveLoaded", err, nil)
				wantExpiry(t, s, theRecord, tt.want)
				if plain := strings.Contains(stored(t, s), "2 and more"); plain != (st.ring == nil) {
					t.Errorf("%s: it is readable: %v", name, plain)
				}
				got, err := st.Load(t.Context(), theID, terms)
				if err != nil || string(got.Data) != "2 and more" || !reflect.DeepEqual(got.Own, read.Own) || !got.Created.Equal(read.Created) {
					t.Errorf("%s: stored is %+v, %v; read was %+v", name, got, err, read)
				}
			}
		}
	})
}

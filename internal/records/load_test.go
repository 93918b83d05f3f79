package records

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// A load extends some timeouts, and leaves others. A load without terms changes nothing,
// however long the application keeps the session.
func TestLoadPutsOffWhatMayBe(t *testing.T) {
	t.Parallel()
	const month = 30 * 24 * time.Hour
	record := func(age time.Duration) string {
		return string(formatRecord(theRevision, time.Now().Add(-age), []byte("1")))
	}
	tombstone := func(age time.Duration) string {
		return string(formatTombstone(theRevision, time.Now().Add(-age), nil))
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		ten := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
		minute, short := Terms{TTL: time.Minute, Lifetime: ten.Lifetime}, Terms{TTL: 30 * time.Second, Lifetime: ten.Lifetime}
		for name, tt := range map[string]struct {
			stored    string
			terms     Terms
			had, want time.Duration
			err       error
		}{
			"at the end of it":           {record(ten.Lifetime - 10*time.Minute), ten, 10 * time.Minute, 10 * time.Minute, nil},
			"at the end of it, and held": {record(ten.Lifetime - 10*time.Minute), ten, 15 * time.Minute, 15 * time.Minute, nil},
			"beyond its lifetime":        {record(ten.Lifetime), ten, 15 * time.Minute, 15 * time.Minute, ErrNotFound},
			"a look at it":               {record(ten.Lifetime), Terms{}, 15 * time.Minute, 15 * time.Minute, nil},
			"a look at a short one":      {record(0), Terms{}, time.Minute, time.Minute, nil},
			"a look at a long one":       {record(0), Terms{}, month, month, nil},
			"a tombstone":                {tombstone(0), ten, time.Minute, time.Minute, ErrGone},
			"an old one":                 {tombstone(50 * time.Second), ten, 10 * time.Second, 10 * time.Second, ErrGone},
			"one, and a short timeout":   {tombstone(50 * time.Second), short, 10 * time.Second, 10 * time.Second, ErrGone},
			"one, and a TTL of a minute": {tombstone(50 * time.Second), minute, 10 * time.Second, 10 * time.Second, ErrGone},
			"one, by a clock ahead":      {tombstone(-time.Hour), ten, time.Minute, time.Minute, ErrGone},
		} {
			s.Do(t, "SET", theRecord, tt.stored, "PX", tt.had.Milliseconds())
			for range 2 {
				r, err := st.Load(t.Context(), theID, tt.terms)
				if wantError(t, name, err, tt.err); err == nil && string(r.Data) != "1" {
					t.Errorf("%s: read %q", name, r.Data)
				}
				wantExpiry(t, s, theRecord, tt.want)
			}
		}
	})
}

// A swapping is a client whose first two replies change places if they are those of a plain load.
type swapping struct{ transport.Client }

func (c swapping) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	replies, err := c.Client.Do(ctx, key, commands...)
	if len(replies) == 4 {
		replies[0], replies[1] = replies[1], replies[0]
	}
	return replies, err
}

// A load whose replies change places does not make Redis forget that the session was ended.
func TestALoadWhoseRepliesChangePlacesKeepsTheTombstone(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		s.Do(t, "SET", theRecord, string(formatTombstone("ABCDEFGHIJKLMNOP", time.Now(), nil)), "PX", time.Minute.Milliseconds())
		c := transport.NewRedigo(s.Pool(t, 1), patient.Timeout)
		defer c.Close()
		st := New(swapping{c}, patient)
		for range 2 {
			_, err := st.Load(t.Context(), theID, Terms{TTL: time.Hour, Lifetime: 10 * time.Hour})
			wantError(t, "the load", err, ErrGone)
			wantExpiry(t, s, theRecord, time.Minute)
		}
	})
}

// A session is taken between the plain commands of a load and its script. It does not expire while it is held,
// although load.lua takes back an extension that the take has relied on.
func TestLoadWhileASessionIsTakenAtTheEndOfItsLifetime(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		reader, p := tapped(t, s, patient)
		holder := process(t, s)
		terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
		created := time.Now().Add(-terms.Lifetime + 30*time.Second)
		s.Do(t, "SET", theRecord, formatRecord(theRevision, created, []byte("1")), "PX", 30_000)

		var h *Hold
		p.Inject(func(cmd redistest.Command) redistest.Fault {
			if runs(cmd, loadScript) && h == nil {
				h, _, _ = holder.Take(t.Context(), theID, terms)
			}
			return redistest.Pass
		})
		if _, err := reader.Load(t.Context(), theID, terms); err != nil || h == nil {
			t.Fatal(err, h)
		}
		if record, lock := expiry(t, s, theRecord), expiry(t, s, theLock); record <= lock {
			t.Errorf("the record has %v, and its lock %v", record, lock)
		}
		h.Release(t.Context())
	})
}

// crossed reads. It calls between after the plain commands and before the script.
func crossed(t *testing.T, p *redistest.Proxy, between func(), read func() error) error {
	t.Helper()
	done := false
	p.Inject(func(cmd redistest.Command) redistest.Fault {
		if runs(cmd, loadScript) && !done {
			done = true
			between()
		}
		return redistest.Pass
	})
	err := read()
	if !done {
		t.Fatal("the read needed no script")
	}
	return err
}

// P4: a session gets another ID during a read. The old ID still leads to it for a minute, for a logout with the
// old cookie and for a stream. Here the session had nearly expired, and each read needs a script.
func TestAReadLeavesATombstoneItsMinute(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		reader, p := tapped(t, s, patient)
		other := process(t, s)
		terms := Terms{TTL: 30 * time.Minute, Lifetime: time.Hour}
		for name, alsoRead := range map[string]bool{"": false, ", and another read crosses it": true} {
			s.Do(t, "FLUSHALL")
			old := Record{Data: []byte("0"), Created: time.Now().Add(-40 * time.Minute)}
			must(t, other.CreateRecord(t.Context(), theID, old, terms))
			s.Do(t, "PEXPIRE", theRecord, 5000)
			err := crossed(t, p, func() {
				h, _, err := other.Take(t.Context(), theID, terms)
				must(t, err)
				must(t, h.Renew(t.Context(), newID, []byte("1")))
				if alsoRead { // the script of that read is still to come
					s.Do(t, "PEXPIRE", theRecord, terms.TTL.Milliseconds())
				}
			}, func() error { _, err := reader.Load(t.Context(), theID, terms); return err })
			wantError(t, "a read that a Renew crosses"+name, err, ErrMoved)
			if left := expiry(t, s, theRecord); left < 58*time.Second || left > 61*time.Second {
				t.Errorf("a read that a Renew crosses%s leaves the tombstone %v", name, left)
			}
		}
		// The script of the read itself turns a session that was ended with its user's others into a tombstone.
		id := idOf(other, "ann", 1)
		r := recordOfUser("ann")
		r.Created = time.Now().Add(-40 * time.Minute)
		must(t, other.CreateRecord(t.Context(), id, r, terms))
		s.Do(t, "PEXPIRE", other.recordKey(id), 5000)
		err := crossed(t, p, func() { endAll(t, other) }, func() error { _, err := reader.Load(t.Context(), id, terms); return err })
		wantError(t, "a read that an EndAll crosses", err, ErrGone)
		if left := expiry(t, s, other.recordKey(id)); left < 58*time.Second {
			t.Errorf("a read that an EndAll crosses leaves the tombstone %v", left)
		}
	})
}

// A read does not extend a tombstone, whatever the idle timeout: an old cookie is forgotten even if its client
// polls.
func TestAReadDoesNotProlongATombstone(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for _, ttl := range []time.Duration{30 * time.Second, 50 * time.Second, time.Minute, time.Hour} {
			s.Do(t, "FLUSHALL")
			terms := Terms{TTL: ttl, Lifetime: 10 * time.Hour}
			must(t, st.Create(t.Context(), theID, []byte("0"), terms))
			h, _, err := st.Take(t.Context(), theID, terms)
			must(t, err)
			must(t, h.Renew(t.Context(), newID, []byte("1")))
			for range 3 {
				lapse(20*time.Second - time.Millisecond)
				_, err := st.Load(t.Context(), theID, terms)
				wantError(t, "Load within the minute", err, ErrMoved)
			}
			lapse(time.Second)
			_, err = st.Load(t.Context(), theID, terms)
			wantError(t, fmt.Sprintf("Load after the minute, with a TTL of %v", ttl), err, ErrNotFound)
		}
	})
}

// P12: a look at a session extends nothing and undoes nothing: the extension by a visitor who comes meanwhile
// stays.
func TestALookLeavesAVisitorsTime(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		reader, p := tapped(t, s, patient)
		visitor := process(t, s)
		terms := Terms{TTL: 30 * time.Minute, Lifetime: 24 * time.Hour}
		create(t, visitor, large("0"))
		s.Do(t, "PEXPIRE", theRecord, 5000)
		err := crossed(t, p, func() {
			_, err := visitor.Load(t.Context(), theID, terms)
			must(t, err)
		}, func() error { _, _, err := reader.Peek(t.Context(), theID, Terms{MaxBytes: 10}); return err }) // a larger record needs the script
		wantError(t, "Peek", err, ErrTooLarge)
		wantExpiry(t, s, theRecord, terms.TTL)
	})
}

// P10: a load costs one round trip. It costs two near the end of a lifetime, and when a process meets the first
// guest with an idle timeout of its own.
func TestRoundTripsOfLoad(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		ten := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
		guests := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour, GuestTTL: time.Minute}
		for name, tt := range map[string]struct {
			own   *Times
			terms Terms
			age   time.Duration
			want  []int
		}{
			"young":                    {nil, ten, time.Hour, []int{1}},
			"old":                      {nil, ten, 9*time.Hour + time.Minute, []int{2, 2}},
			"TTL and Lifetime are one": {nil, Terms{TTL: 10 * time.Hour, Lifetime: 10 * time.Hour}, 9 * time.Hour, []int{1}},
			"a look extends nothing":   {nil, Terms{}, 9 * time.Hour, []int{1}},
			"guests, by the terms":     {&Times{Idle: time.Minute}, guests, 0, []int{1, 1}},
			"guests of others":         {&Times{Idle: time.Minute}, ten, 0, []int{2, 1, 1}},
			"of more than 31 years":    {&Times{Idle: 40 * 365 * 24 * time.Hour}, guests, 0, []int{1, 1}},
			"remembered":               {&Times{Until: time.Now().Add(720 * time.Hour)}, ten, 0, []int{1, 1}},
			"a look at a guest":        {&Times{Idle: time.Minute}, Terms{GuestTTL: time.Minute}, 0, []int{1, 1}},
		} {
			st, p := tapped(t, s, patient)
			s.Do(t, "DEL", theRecord)
			record := Record{Data: []byte("1"), Created: time.Now().Add(-tt.age), Own: tt.own}
			must(t, st.CreateRecord(t.Context(), theID, record, tt.terms))
			for i, want := range tt.want {
				p.Forget()
				_, err := st.Load(t.Context(), theID, tt.terms)
				if got := p.RoundTrips(); got != want || err != nil {
					t.Errorf("%s: load %d had %d round trips, %v, want %d", name, i+1, got, err, want)
				}
			}
		}
	})
}

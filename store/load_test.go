package store

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A look at an ended session does not prolong what is remembered of it.
func TestLoadDoesNotProlongATombstone(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		for name, lives := range map[string]time.Duration{"new": time.Minute, "old": 20 * time.Second} {
			s.Do(t, "SET", theRecord, formatTombstone("ABCDEFGHIJKLMNOP", time.Now()), "PX", lives.Milliseconds())
			for range 3 {
				_, err := st.Load(t.Context(), theID, Terms{TTL: time.Hour, Lifetime: DefaultLifetime})
				wantError(t, name, err, ErrGone)
				if left := expiry(t, s.Server, theRecord); left > lives {
					t.Errorf("%s: it has %v, and had %v", name, left, lives)
				}
			}
		}
	})
}

// A record has no more than its lifetime. But where a holder has given it more, it keeps that.
func TestLoadNearTheEndOfALifetime(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
		old := time.Now().Add(-10*time.Hour + 10*time.Minute)
		for name, tt := range map[string]struct{ had, want time.Duration }{
			"put off":      {time.Minute, 10 * time.Minute},
			"as it was":    {10 * time.Minute, 10 * time.Minute},
			"held for now": {15 * time.Minute, 15 * time.Minute},
		} {
			s.Do(t, "SET", theRecord, formatRecord("ABCDEFGHIJKLMNOP", old, []byte("1")), "PX", tt.had.Milliseconds())
			if r, err := st.Load(t.Context(), theID, terms); string(r.Data) != "1" || err != nil {
				t.Errorf("%s: %q, %v", name, r.Data, err)
			}
			wantExpiry(t, s.Server, theRecord, tt.want)
		}
	})
}

// A session that is taken while a load is between its plain commands and its script does not run
// out under its holder: it looked as if it had time.
func TestLoadWhileASessionIsTakenAtTheEndOfItsLifetime(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		learn(t, s.Server)
		p := redistest.NewProxy(t, s.Server)
		reader, holder := s.open(p.Pool(t, 2), nil, patient), s.process(t)
		terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
		created := time.Now().Add(-terms.Lifetime + 30*time.Second)
		s.Do(t, "SET", theRecord, formatRecord("ABCDEFGHIJKLMNOP", created, []byte("1")), "PX", 30_000)

		var h *Hold
		p.Inject(func(cmd redistest.Command) redistest.Fault {
			if runs(cmd, loadScript) && h == nil {
				h, _ = holder.Take(t.Context(), theID, terms)
			}
			return redistest.Pass
		})
		if _, err := reader.Load(t.Context(), theID, terms); err != nil || h == nil {
			t.Fatal(err, h)
		}
		if record, lock := expiry(t, s.Server, theRecord), expiry(t, s.Server, theLock); record <= lock {
			t.Errorf("the record has %v, and its lock %v", record, lock)
		}
		h.Release(t.Context())
	})
}

// What cannot be read is not put off.
func TestLoadDoesNotProlongWhatItCannotRead(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		for name, write := range map[string][]any{
			"garbage":       {"SET", theRecord, "garbage"},
			"later version": {"SET", theRecord, `{"v":3}`},
			"another type":  {"LPUSH", theRecord, "1"},
		} {
			s.Do(t, "DEL", theRecord)
			s.Do(t, write[0].(string), write[1:]...)
			s.Do(t, "PEXPIRE", theRecord, 20_000)
			_, err := st.Load(t.Context(), theID, Terms{TTL: time.Hour, Lifetime: DefaultLifetime})
			wantError(t, name, err, ErrCorrupt)
			if left := expiry(t, s.Server, theRecord); left > 20*time.Second {
				t.Errorf("%s: it has %v", name, left)
			}
		}
	})
}

// What a load costs: one round trip, and a second one near the end of a lifetime only.
func TestRoundTripsOfLoad(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		learn(t, s.Server)
		p := redistest.NewProxy(t, s.Server)
		st := s.open(p.Pool(t, 2), nil, patient)
		for name, tt := range map[string]struct {
			terms Terms
			age   time.Duration
			want  int
		}{
			"young":                     {Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}, time.Hour, 1},
			"old":                       {Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}, 9*time.Hour + time.Minute, 2},
			"TTL and Lifetime are one":  {Terms{TTL: 10 * time.Hour, Lifetime: 10 * time.Hour}, 9 * time.Hour, 1},
			"a look, which puts it off": {Terms{}, 9 * time.Hour, 1},
		} {
			create(t, st, "1")
			s.Do(t, "SET", theRecord, formatRecord("ABCDEFGHIJKLMNOP", time.Now().Add(-tt.age), []byte("1")),
				"PX", (10*time.Hour - tt.age).Milliseconds())
			p.Forget()
			if _, err := st.Load(t.Context(), theID, tt.terms); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if n := p.RoundTrips(); n != tt.want {
				t.Errorf("%s: %d round trips, want %d", name, n, tt.want)
			}
			s.Do(t, "DEL", theRecord)
		}
	})
}

// A connection that breaks, whichever command it is, is not noticed.
func TestLoadOverABrokenConnection(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		p := redistest.NewProxy(t, s.Server)
		st := s.open(p.Pool(t, 2), nil, patient)
		create(t, st, "1")
		for _, command := range []string{"PTTL", "PEXPIRE", "PING", "GET"} {
			for _, fault := range []redistest.Fault{redistest.DropCommand, redistest.DropReply, redistest.CutReply} {
				onceFor(t, p, kind{command, func(cmd redistest.Command) bool { return cmd.Name == command }}, fault)
				if r, err := st.Load(t.Context(), theID, Terms{TTL: time.Hour}); string(r.Data) != "1" || err != nil {
					t.Errorf("%s, %v: %q, %v", command, fault, r.Data, err)
				}
			}
		}
	})
}

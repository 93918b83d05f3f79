package store

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

func TestOwnTimesAreStored(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		ctx, st := t.Context(), s.process(t)
		terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour, GuestTTL: 20 * time.Minute}
		wantOwn := func(id string, want *Times) {
			t.Helper()
			r, err := st.Load(ctx, id, Terms{})
			if err != nil || (r.Own == nil) != (want == nil) || want != nil && (r.Own.Idle != want.Idle || r.Own.Until.UnixMilli() != want.Until.UnixMilli()) {
				t.Fatalf("%s has %+v, %v, want %+v", id, r.Own, err, want)
			}
		}
		if err := st.Create(ctx, theID, []byte("1"), terms); err != nil {
			t.Fatal(err)
		}
		guest := &Times{Idle: 20 * time.Minute}
		wantOwn(theID, guest)
		wantExpiry(t, s.Server, theRecord, 20*time.Minute)

		h := take(t, st)
		until := time.Now().Add(720 * time.Hour)
		h.Record.Own = &Times{h.Record.Own.Idle, until}
		save(t, h, "2")
		wantOwn(theID, &Times{20 * time.Minute, until})
		wantExpiry(t, s.Server, theRecord, 720*time.Hour)

		h = take(t, st)
		save(t, h, "3")
		wantOwn(theID, &Times{20 * time.Minute, until})

		if err := take(t, st).Renew(ctx, newID, []byte("4")); err != nil {
			t.Fatal(err)
		}
		wantOwn(newID, &Times{Until: until})
		wantExpiry(t, s.Server, newRecord, 720*time.Hour)
	})
}

func TestAReplacedSessionIsAGuests(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		s.Do(t, "SET", theRecord, "garbage", "PX", 60_000)
		h, err := s.process(t).Take(t.Context(), theID, Terms{GuestTTL: 20 * time.Minute})
		wantError(t, "Take", err, ErrCorrupt)
		save(t, h, "1")
		wantExpiry(t, s.Server, theRecord, 20*time.Minute)
	})
}

func TestRoundTripsOfLoadWithOwnTimes(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		learn(t, s.Server)
		for name, tt := range map[string]struct {
			own   *Times
			terms Terms
			want  []int
		}{
			"guests, by the terms":  {&Times{Idle: time.Minute}, Terms{TTL: time.Hour, Lifetime: 10 * time.Hour, GuestTTL: time.Minute}, []int{1, 1}},
			"guests of others":      {&Times{Idle: time.Minute}, Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}, []int{2, 1, 1}},
			"of more than 31 years": {&Times{Idle: 40 * 365 * 24 * time.Hour}, Terms{GuestTTL: time.Minute, Lifetime: 10 * time.Hour}, []int{1, 1}},
			"remembered":            {&Times{Until: time.Now().Add(720 * time.Hour)}, Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}, []int{1, 1}},
			"a look at a guest":     {&Times{Idle: time.Minute}, Terms{GuestTTL: time.Minute}, []int{1, 1}},
		} {
			p := redistest.NewProxy(t, s.Server)
			st := s.open(p.Pool(t, 2), nil, patient)
			s.Do(t, "DEL", theRecord)
			if err := st.CreateRecord(t.Context(), theID, Record{Data: []byte("1"), Created: time.Now(), Own: tt.own}, tt.terms); err != nil {
				t.Fatal(err)
			}
			for i, want := range tt.want {
				p.Forget()
				if _, err := st.Load(t.Context(), theID, tt.terms); err != nil {
					t.Error(err)
				}
				if got := p.RoundTrips(); got != want {
					t.Errorf("%s: load %d had %d round trips, want %d", name, i+1, got, want)
				}
			}
		}
	})
}

package records

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// P12: a session expires when no request has come for its TTL. It does not expire while a request holds it or
// waits for it, however long that takes.

// A session is held for longer than its TTL, or than its own timeouts. The TTL may be longer or shorter than the
// lease. The session exists all the time: for a reader, for a waiter that came in time, and for a later request.
// After its release it expires, and leaves nothing.
func TestAHeldSessionDoesNotRunOut(t *testing.T) {
	t.Parallel()
	const ttl, hold = 5 * time.Second, 50 * time.Second
	for name, tt := range map[string]struct {
		lease time.Duration
		own   *Times
		quiet bool
		later bool // its own timeout is longer than the TTL
	}{
		"lease like the TTL":                {lease: ttl},
		"lease longer than the TTL":         {lease: 3 * ttl},
		"a guest":                           {lease: 3 * ttl, own: &Times{Idle: ttl}},
		"remembered":                        {lease: 3 * ttl, own: &Times{Until: time.Now().Add(ttl)}},
		"a job has it":                      {lease: 3 * ttl, quiet: true},
		"a job has a guest":                 {lease: 3 * ttl, own: &Times{Idle: ttl / 5}, quiet: true},
		"a job has a guest of longer terms": {lease: 3 * ttl, own: &Times{Idle: time.Hour}, quiet: true, later: true},
	} {
		t.Run(name, fakeTime(func(t *testing.T, s *redistest.Server) {
			o := Options{Lease: tt.lease, Timeout: patient.Timeout}
			here, reader := onPool(s.Pool(t, 8), o), onPool(s.Pool(t, 8), o)
			terms := Terms{TTL: ttl, LockWait: time.Hour, MaxHold: time.Hour, Quiet: tt.quiet}
			own := tt.own
			if own != nil && !own.Until.IsZero() {
				own = &Times{Until: time.Now().Add(ttl)}
			}
			record := Record{Data: []byte("0"), Created: time.Now(), Own: own}
			must(t, here.CreateRecord(t.Context(), theID, record, terms))
			s.Do(t, "PEXPIRE", theRecord, ttl.Milliseconds())
			h := takeBy(t, here, terms)
			lapse(hold)
			wantData(t, s, "0")
			var waiting []*guest
			if own == nil || own.Until.IsZero() { // otherwise it ends when it is released
				waiting = guests(t, onPool(s.Pool(t, 8), o), 1, terms)
				lapse(hold)
				waiting = append(waiting, guests(t, reader, 1, terms)...)
			}
			save(t, h, "held")
			for _, g := range waiting {
				wantError(t, "Touch", g.holds(t, "held").Touch(t.Context()), nil)
			}
			if tt.later {
				s.Do(t, "PEXPIRE", theRecord, ttl.Milliseconds()) // as its own timeout would
			}
			lapse(3*tt.lease + outlast) // the record may outlast the lock of a job
			wantNotFound(t, s, reader, terms)
			if keys := s.Keys(t); len(keys) > 0 {
				t.Errorf("keys %q are left", keys)
			}
		}))
	}
}

// Requests of one process came in time and wait in line. Each but the last changes nothing and fails, so only
// their waiting keeps the session. It exists for the last of them, and for later requests.
func TestALineThatCameInTimeFindsItsSession(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		terms := Terms{TTL: 5 * time.Second}
		st := process(t, s)
		must(t, st.Create(t.Context(), theID, []byte("0"), terms))
		first := takeBy(t, st, terms)
		line := guests(t, st, 6, terms)
		lapse(terms.TTL * 2 / 3)
		first.Release(t.Context())
		for i, g := range line {
			h := g.holds(t, "0")
			if lapse(terms.TTL * 2 / 3); i < len(line)-1 {
				h.Release(t.Context())
			} else {
				save(t, h, "the last")
			}
		}
		wantData(t, s, "the last")
	})
}

// The holder was killed, so no renewal extends the session. A request that came in time waits for the end of the
// lease, gets the session then, and does not wait longer.
func TestWhoWaitsForADeadHolderFindsItsSession(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		const ttl = time.Second
		st := process(t, s)
		must(t, st.Create(t.Context(), theID, []byte("0"), Terms{TTL: ttl}))
		s.Do(t, "SET", theLock, "killed", "PX", (10 * ttl).Milliseconds())
		begun := time.Now()
		h, _, err := st.Take(t.Context(), theID, Terms{TTL: ttl, LockWait: time.Minute})
		if took := time.Since(begun); err != nil || took > 10*ttl+100*time.Millisecond {
			t.Fatalf("%v after %v", err, took)
		}
		save(t, h, "1")
		wantData(t, s, "1")
	})
}

// A waiter in another process may miss its turn. It asks again a little later. A session with a short TTL still
// exists then.
func TestASessionOutlastsTheNextTurn(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		here, terms := process(t, s), Terms{TTL: 50 * time.Millisecond, LockWait: time.Hour}
		deaf, _ := tapped(t, s, patient) // a proxy carries no messages
		must(t, here.Create(t.Context(), theID, []byte("0"), terms))
		h := takeBy(t, here, terms)
		waiting := guests(t, deaf, 1, terms)
		lapse(time.Second) // the request has joined the queue
		save(t, h, "held")
		wantError(t, "Touch", waiting[0].holds(t, "held").Touch(t.Context()), nil)
	})
}

// P12: the absolute timeout counts from when the session began, however often it is saved.
func TestASaveKeepsWhenTheSessionBegan(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, terms := process(t, s), Terms{TTL: time.Hour, Lifetime: 2 * time.Hour}
		must(t, st.Create(t.Context(), theID, []byte("0"), terms))
		for range 3 {
			lapse(30 * time.Minute)
			save(t, takeBy(t, st, terms), "1")
		}
		lapse(30 * time.Minute)
		wantNotFound(t, s, st, terms)
	})
}

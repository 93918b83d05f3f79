package records

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// watched are the terms of a caller that only asks.
var watched = Terms{TTL: 30 * time.Minute, Lifetime: 24 * time.Hour}

// moves gives a session another ID. It then is the user's or, if user is "", a guest's.
func moves(t *testing.T, st *Engine, id, to, user string) {
	t.Helper()
	h := takeID(t, st, id)
	h.Record.User = user
	must(t, h.Renew(t.Context(), to, []byte("0")))
}

func wantNow(t *testing.T, st *Engine, id, want string) {
	t.Helper()
	if now, err := st.Alive(t.Context(), id, watched); now != want || err != nil {
		t.Errorf("Alive(%s) = %s, %v; want %s", id, now, err, want)
	}
}

func wantEnded(t *testing.T, st *Engine, id string, want error) {
	t.Helper()
	_, err := st.Alive(t.Context(), id, watched)
	wantError(t, "Alive", err, want)
}

// P16: asking whether a session is alive costs two plain commands, whatever its size, and extends nothing.
func TestAskingWhetherASessionIsAlive(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st, p := tapped(t, s, patient)
		must(t, st.Create(t.Context(), theID, make([]byte, 100_000), Terms{}))
		ann := login(t, st, "ann", 1)
		for id, want := range map[string][]string{theID: {"GETRANGE"}, ann: {"GETRANGE", "GET"}} {
			s.Do(t, "PEXPIRE", st.recordKey(id), 50_000)
			p.Forget()
			wantNow(t, st, id, id)
			var names []string
			for _, cmd := range p.Commands() {
				names = append(names, cmd.Name)
			}
			if !slices.Equal(names, want) {
				t.Errorf("the commands are %q, want %q", names, want)
			}
			wantExpiry(t, s, st.recordKey(id), 50*time.Second)
		}
		unread := takeID(t, st, theID) // held, not read
		wantNow(t, st, theID, theID)
		unread.Release(t.Context())
		s.Do(t, "SET", theRecord, "damaged", "PX", 50_000) // a damaged record has not ended
		wantNow(t, st, theID, theID)
		wantExpiry(t, s, theRecord, 50*time.Second)
	})
}

// However a session was ended, it is no longer alive.
func TestAnEndedSessionIsNotAlive(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, other := process(t, s), process(t, s)
		create(t, st, "0")
		a, b, c := login(t, st, "ann", 1), login(t, st, "ann", 2), login(t, st, "ann", 3)
		must(t, takeID(t, other, theID).Destroy(t.Context()))
		wantEnded(t, st, theID, ErrGone)
		must(t, other.End(t.Context(), a))
		wantEnded(t, st, a, ErrGone)
		holder := takeID(t, other, b)
		endAll(t, other, c)
		wantEnded(t, st, b, ErrGone)
		wantNow(t, st, c, c)
		holder.Release(t.Context())
		must(t, other.CreateRecord(t.Context(), idOf(st, "ann", 4), recordOfUser("ann"), Terms{MaxSessions: 1}))
		wantEnded(t, st, c, ErrGone)

		until := time.Now().Add(20 * time.Minute)
		must(t, st.CreateRecord(t.Context(), newID, Record{Data: []byte("0"), Created: time.Now(), Own: &Times{Until: until}}, Terms{}))
		s.Do(t, "PERSIST", newRecord) // so only the process's clock ends it
		lapse(time.Until(until) - time.Millisecond)
		wantNow(t, st, newID, newID)
		lapse(time.Millisecond)
		wantEnded(t, st, newID, ErrNotFound)
	})
}

// P16: neither a replica that has not received the record or the mark, nor a reply that belongs to another call,
// ends a session.
func TestAReplicaEndsNothing(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "0")
		ann := login(t, st, "ann", 1)
		for _, key := range []string{st.recordKey(theID), st.recordKey(ann), st.keys(ann).mark.(string)} {
			s.Do(t, "RENAME", key, "away")
			s.Fake(func(f *fakeredis.Server) { f.Replica = true })
			for _, id := range []string{theID, ann} {
				now, err := st.Alive(t.Context(), id, watched)
				if now != id || errors.Is(err, ErrGone) || errors.Is(err, ErrNotFound) {
					t.Errorf("without %s: %s, %v", key, now, err)
				}
			}
			s.Fake(func(f *fakeredis.Server) { f.Replica = false })
			s.Do(t, "RENAME", "away", key)
		}
		wantNow(t, st, theID, theID)
		wantNow(t, st, ann, ann)
	})
}

// P16: a session that gets new IDs is followed: from a guest to a user, and for as long as the user stays the
// same.
func TestAMovedSessionIsFollowed(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "0")
		a, b, bob := idOf(st, "ann", 1), idOf(st, "ann", 2), idOf(st, "bob", 1)
		moves(t, st, theID, newID, "")
		wantNow(t, st, theID, newID)
		moves(t, st, newID, a, "ann")
		moves(t, st, a, b, "ann")
		wantNow(t, st, theID, b)
		moves(t, st, b, bob, "bob")
		wantEnded(t, st, a, ErrGone)
		wantNow(t, st, bob, bob)

		first := login(t, st, "ann", 10)
		for n := 11; n < 20; n++ {
			moves(t, st, idOf(st, "ann", n-1), idOf(st, "ann", n), "ann")
		}
		for at := 10; at < 19; at += maxMoves { // one call follows no more IDs than that
			want := idOf(st, "ann", min(at+maxMoves, 19))
			wantNow(t, st, first, want)
			first = want
		}
		endAll(t, st)
		wantEnded(t, st, first, ErrGone)
	})
}

// While keys of Encryption are changed, a user's session may get another tag. It is still followed.
func TestAMovedSessionIsFollowedWhileKeysChange(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		before, after := onPool(s.Pool(t, 8), encrypted(oldKey, newKey)), onPool(s.Pool(t, 8), encrypted(newKey, oldKey))
		stranger := onPool(s.Pool(t, 8), encrypted(oldKey))
		for n, user := range []string{"ann", "bob"} {
			id, to := login(t, before, "ann", n), idOf(after, user, 10+n)
			moves(t, after, id, to, user)
			for _, st := range []*Engine{before, after} {
				if user == "ann" {
					wantNow(t, st, id, to)
				} else {
					wantEnded(t, st, id, ErrGone)
				}
			}
			wantEnded(t, stranger, id, ErrGone) // it lacks the key that sealed the successor
		}
	})
}

// P16: Touch extends a session as a read does, and a guest's session by its own timeout. It never extends a
// session that has ended.
func TestTouchExtendsWithoutReading(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st, p := tapped(t, s, patient)
		guest := Terms{TTL: time.Hour, GuestTTL: 20 * time.Minute, Lifetime: 24 * time.Hour}
		must(t, st.CreateRecord(t.Context(), theID, Record{Data: make([]byte, 100_000), Created: time.Now(), Own: guest.Guest()}, guest))
		ann := login(t, st, "ann", 1)
		must(t, st.Touch(t.Context(), theID, guest)) // from now on Redis has the script
		for id, want := range map[string]time.Duration{theID: 20 * time.Minute, ann: time.Hour} {
			s.Do(t, "PEXPIRE", st.recordKey(id), 50_000)
			p.Forget()
			must(t, st.Touch(t.Context(), id, guest))
			if p.RoundTrips() != 1 {
				t.Errorf("%d round trips", p.RoundTrips())
			}
			wantExpiry(t, s, st.recordKey(id), want)
		}
		must(t, st.End(t.Context(), theID))
		endAll(t, st)
		for _, id := range []string{theID, ann} {
			wantError(t, "Touch", st.Touch(t.Context(), id, guest), ErrGone)
		}
		wantError(t, "Touch", st.Touch(t.Context(), newID, guest), ErrNotFound)
	})
}

// A quiet Load extends nothing.
func TestAQuietLoad(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "0")
		quiet := watched
		quiet.Quiet = true
		s.Do(t, "PEXPIRE", theRecord, 50_000)
		_, err := st.Load(t.Context(), theID, quiet)
		must(t, err)
		wantExpiry(t, s, theRecord, 50*time.Second)
		_, err = st.Load(t.Context(), theID, watched)
		must(t, err)
		wantExpiry(t, s, theRecord, 30*time.Minute)
	})
}

// longestHead is long enough for every head.
func TestTheLongestHead(t *testing.T) {
	t.Parallel()
	r := Record{Data: []byte("{}"), Created: time.UnixMilli(99_999_999_999_999), User: "ann", revision: theRevision,
		Own: &Times{Idle: maxIdle, Until: time.UnixMilli(999_999_999_999_999)}}
	text := r.text(nil)
	if _, at, _, err := parseHead(text, theForm.bond); at != longestHead || err != nil {
		t.Errorf("the head has %d bytes, longestHead is %d: %v", at, longestHead, err)
	}
}

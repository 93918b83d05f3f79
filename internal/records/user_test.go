package records

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
)

// idOf returns the ID of the n-th session of a user.
func idOf(st *Engine, user string, n int) string {
	tag := st.Tag(user)
	return base64.RawURLEncoding.EncodeToString(tag[:]) + fmt.Sprintf(".%011d", n)
}

// tryLogin begins the n-th session of ann, or returns why it cannot.
func tryLogin(t *testing.T, st *Engine, n int, terms Terms) error {
	return st.CreateRecord(t.Context(), idOf(st, "ann", n), recordOfUser("ann"), terms)
}

// login begins the n-th session of a user.
func login(t *testing.T, st *Engine, user string, n int) (id string) {
	t.Helper()
	id = idOf(st, user, n)
	must(t, st.CreateRecord(t.Context(), id, recordOfUser(user), Terms{}))
	return id
}

// recordOfUser is what each session of a user begins with.
func recordOfUser(user string) Record {
	return Record{Data: []byte("0"), Created: time.Now(), User: user, Device: `Firefox, "Berlin"`}
}

// endAll ends all sessions of ann except those in but.
func endAll(t *testing.T, st *Engine, but ...string) {
	t.Helper()
	_, err := st.EndUser(t.Context(), "ann", but...)
	wantError(t, "EndUser", err, nil)
}

// wantOver checks that a session is dead for every request.
func wantOver(t *testing.T, st *Engine, id string) {
	t.Helper()
	h, _, err := st.Take(t.Context(), id, Terms{})
	wantError(t, "Take", err, ErrGone)
	if h != nil {
		t.Error("a hold of an ended session")
	}
	_, err = st.Load(t.Context(), id, Terms{TTL: time.Minute})
	wantError(t, "Load", err, ErrGone)
	_, _, err = st.Peek(t.Context(), id, Terms{})
	wantError(t, "Peek", err, ErrGone)
}

func wantAlive(t *testing.T, st *Engine, id, data string) {
	t.Helper()
	h := takeID(t, st, id)
	defer h.Release(t.Context())
	if string(h.Record.Encoded()) != data || h.Record.User == "" {
		t.Errorf("%s of %q, want %s", h.Record.Encoded(), h.Record.User, data)
	}
}

// A user's session keeps its user, however it is used.
func TestAUsersSessionKnowsItsUser(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for i, user := range []string{"ann", `"\ü` + "\x00", "x" + string(make([]byte, MaxUser-1))} {
			id := login(t, st, user, i)
			h := takeID(t, st, id)
			save(t, h, "1")
			r, err := st.Load(t.Context(), id, Terms{})
			if err != nil || r.User != user || r.Device != `Firefox, "Berlin"` || string(r.Data) != "1" {
				t.Errorf("%+v, %v", r, err)
			}
			wantAlive(t, st, id, "1")
		}
	})
}

// P14: ending one session, all others, or all takes effect at once, for new requests and for holders.
func TestEndedSessionsAreOverAtOnce(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st, other := process(t, s), process(t, s)
		a, b, c := login(t, st, "ann", 1), login(t, st, "ann", 2), login(t, other, "ann", 3)
		bob := login(t, st, "bob", 1)

		h := takeID(t, st, a)
		must(t, other.End(t.Context(), a))
		wantError(t, "Save", h.Save(t.Context(), []byte("2")), ErrLost)
		wantOver(t, st, a)
		wantError(t, "a second End", st.End(t.Context(), a), ErrGone)

		h = takeID(t, other, c)
		ended, err := st.EndUser(t.Context(), "ann", b, bob)
		if err != nil || !slices.Equal(ended, []string{c}) {
			t.Errorf("EndUser = %q, %v", ended, err)
		}
		wantError(t, "Save", h.Save(t.Context(), []byte("2")), ErrLost)
		wantOver(t, other, c)
		wantAlive(t, st, b, "0")

		ended, err = other.EndUser(t.Context(), "ann")
		if err != nil || !slices.Equal(ended, []string{b}) {
			t.Errorf("EndUser = %q, %v", ended, err)
		}
		wantOver(t, st, b)
		wantAlive(t, st, bob, "0")
		if ended, err := st.EndUser(t.Context(), "ann"); len(ended) > 0 || err != nil {
			t.Errorf("EndUser of nobody = %q, %v", ended, err)
		}
		wantAlive(t, st, login(t, st, "ann", 4), "0")
	})
}

// A Renew that is under way when the session is ended writes no record.
func TestARenewDoesNotOutliveTheEnd(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, other := process(t, s), process(t, s)
		for i, end := range []func(id string) error{
			func(id string) error { return other.End(t.Context(), id) },
			func(string) error { _, err := other.EndUser(t.Context(), "ann"); return err },
		} {
			id, next := login(t, st, "ann", i), idOf(st, "ann", 10+i)
			h := takeID(t, st, id)
			wantError(t, "ending it", end(id), nil)
			if err := h.Renew(t.Context(), next, []byte("2")); !errors.Is(err, ErrGone) && !errors.Is(err, ErrLost) {
				t.Errorf("Renew: %v", err)
			}
			wantOver(t, st, id)
			if s.Exists(t, st.recordKey(next)) {
				t.Error("the Renew has stored another session")
			}
			wantListed(t, st, "ann")
		}
	})
}

// A Renew and a logout take the old ID off the list.
func TestTheListFollowsRenewAndDestroy(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		old, next := login(t, st, "ann", 1), idOf(st, "ann", 2)
		must(t, takeID(t, st, old).Renew(t.Context(), next, []byte("1")))
		wantOver(t, st, old)
		wantAlive(t, st, next, "1")
		wantListed(t, st, "ann", next)
		if n := s.Do(t, "ZCARD", st.keys(next).list); fmt.Sprint(n) != "1" {
			t.Errorf("%v sessions are on the list, want 1", n)
		}
		must(t, takeID(t, st, next).Destroy(t.Context()))
		wantOver(t, st, next)
		if n := s.Do(t, "EXISTS", st.keys(next).list); fmt.Sprint(n) != "0" {
			t.Error("an empty list is left")
		}
	})
}

// A lost mark, evicted for example, ends its user's sessions at once. A lost list ends them as soon as a request
// asks for the list. Neither brings back a session, not even one that was ended before.
func TestALostKeyEndsTheSessions(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		theList := func(k sessionKeys) []any { return []any{k.list} }
		theMark := func(k sessionKeys) []any { return []any{k.mark} }
		both := func(k sessionKeys) []any { return []any{k.list, k.mark} }
		for what, tt := range map[string]struct {
			lost func(sessionKeys) []any
			ask  func(h *Hold)
		}{
			"the list, and another logs in": {theList, func(*Hold) { login(t, st, "ann", 100) }},
			"the list, which is asked for":  {theList, func(*Hold) { wantListed(t, st, "ann") }},
			"the list, and all are ended":   {theList, func(h *Hold) { endAll(t, st, idOf(st, "ann", 1)) }},
			"the list, at a Renew": {theList, func(h *Hold) {
				wantError(t, "Renew", h.Renew(t.Context(), idOf(st, "ann", 200), []byte("1")), ErrGone)
				login(t, st, "ann", 101)
			}},
			"the mark": {theMark, func(*Hold) {}},
			"both":     {both, func(*Hold) {}},
		} {
			s.Do(t, "FLUSHALL")
			id, ended := login(t, st, "ann", 1), login(t, st, "ann", 2)
			must(t, st.End(t.Context(), ended))
			h := takeID(t, st, id)
			s.Do(t, "DEL", tt.lost(st.keys(id))...)
			tt.ask(h)
			wantError(t, what+": Save", h.Save(t.Context(), []byte("1")), ErrLost)
			wantOver(t, st, id)
			wantAlive(t, st, login(t, st, "ann", 3), "0")
			wantOver(t, st, id)
			wantOver(t, st, ended)
		}
	})
}

// The list shows the sessions, newest first. Listing does not use them.
func TestListUser(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		terms := Terms{TTL: time.Hour}
		now := time.Now().Truncate(time.Millisecond)
		for n := range 250 {
			record := Record{Data: []byte("0"), Created: now.Add(-time.Duration(n) * time.Second), User: "ann"}
			must(t, st.CreateRecord(t.Context(), idOf(st, "ann", n), record, terms))
		}
		id := idOf(st, "ann", 0)
		s.Do(t, "PEXPIRE", st.recordKey(id), (20 * time.Minute).Milliseconds())
		for range 2 {
			listed, err := st.ListUser(t.Context(), "ann", terms)
			if err != nil || len(listed) != 250 || listed[0].ID != id || !listed[0].Created.Equal(now) {
				t.Fatalf("%d listed, %v", len(listed), err)
			}
			if ago := time.Since(listed[0].Seen); ago < 40*time.Minute || ago > 41*time.Minute {
				t.Errorf("seen %v ago", ago)
			}
			if left := time.Until(listed[0].Expires); left > 20*time.Minute || left < 19*time.Minute {
				t.Errorf("expires in %v", left)
			}
			if ago := time.Since(listed[249].Seen); ago < 0 || ago > time.Minute {
				t.Errorf("seen %v ago", ago)
			}
		}
	})
}

// The name of a user has 1 to 512 bytes. The ID of a user's session has the user's tag.
func TestBadUsers(t *testing.T) {
	t.Parallel()
	st := onPool(redistest.Embedded(t).Pool(t, 8), patient)
	for _, user := range []string{"", string(make([]byte, MaxUser+1))} {
		_, err := st.ListUser(t.Context(), user, Terms{})
		wantError(t, "ListUser", err, errUser)
		_, err = st.EndUser(t.Context(), user)
		wantError(t, "EndUser", err, errUser)
	}
	wantError(t, "a tag without a user", st.CreateRecord(t.Context(), idOf(st, "ann", 1), Record{Data: []byte("0")}, Terms{}), errTag)
	wantError(t, "a user without a tag", st.CreateRecord(t.Context(), newID, Record{Data: []byte("0"), User: "ann"}, Terms{}), errTag)
	wantError(t, "End", st.End(t.Context(), idOf(st, "ann", 1)), ErrNotFound)
	wantError(t, "End", st.End(t.Context(), newID), ErrNotFound)
}

// P14: a request that comes after the end never sees the session, although its process holds the session and
// passes it on from request to request without asking Redis.
func TestWhoComesAfterTheEndDoesNotJoinTheHolder(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, other := process(t, s), process(t, s)
		st.maxUnheard = time.Hour
		n := 0
		for _, end := range uses {
			n++
			id := login(t, st, "ann", n)
			h := takeID(t, st, id)
			must(t, other.End(t.Context(), id))
			lapse(time.Millisecond)
			late := make(chan error)
			go func() {
				h, _, err := st.Take(t.Context(), id, Terms{})
				if h != nil {
					h.Release(t.Context())
				}
				late <- err
			}()
			redistest.Eventually(t, "it waits", func() bool {
				_, _, err := st.Take(t.Context(), id, Terms{LockWait: locker.NoWait, MaxWaiters: 1})
				return errors.Is(err, ErrTooManyWaiters)
			})
			_ = end(t.Context(), h)
			wantError(t, "Take after the end", <-late, ErrGone)
		}
	})
}

// No process could read a record whose user is not the one in the ID. So a hold does not save it, and the session stays
// as it was.
func TestAHoldDoesNotSaveAnotherUser(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "0")
		id := login(t, st, "ann", 1)
		h, guest := takeID(t, st, id), take(t, st)
		h.Record.User, guest.Record.User = "", "ann"
		wantError(t, "Save without the user", h.Save(t.Context(), []byte("1")), errTag)
		wantError(t, "Save of a guest's session with a user", guest.Save(t.Context(), []byte("1")), errTag)
		wantAlive(t, st, id, "0")
		wantData(t, s, "0")
		wantFree(t, s)
	})
}

package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// What a process ends whose clock is ahead is on no list any more, also where it would have ended by
// that clock.
func TestEndUserByAClockThatIsAhead(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		stays, ends := login(t, st, "ann", 1), idOf(st, "ann", 2)
		old := Record{Data: []byte("0"), Created: time.Now().Add(time.Minute - DefaultLifetime), User: "ann"}
		wantError(t, "a login", st.CreateRecord(t.Context(), ends, old, Terms{}), nil)
		wantOnList(t, st, stays, ends)
		endOthers(t, st, stays, time.Now().Add(5*time.Minute))
		wantOnList(t, st, stays)
		wantOver(t, st, ends)
	})
}

// A login that fails since nobody knows whether it was done leaves no session behind that its user
// would see, and that would count.
func TestALoginWithoutAReplyDoesNotCount(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, proxy := tapped(t, s, patient)
		defer st.Close()
		learn(t, s)
		proxy.Inject(func(cmd redistest.Command) redistest.Fault {
			if runs(cmd, loginScript) {
				return redistest.DropReply
			}
			return redistest.Pass
		})
		id, record := idOf(st, "ann", 1), Record{Data: []byte("0"), Created: time.Now(), User: "ann"}
		terms := Terms{MaxSessions: 1, RefuseLogin: true}
		err := st.CreateRecord(t.Context(), id, record, terms)
		wantError(t, "a login", err, ErrUnavailable)
		eventually(t, "the session is over", func() bool {
			_, err := st.Load(t.Context(), id, Terms{})
			return errors.Is(err, ErrGone)
		})
		wantOnList(t, st)
		err = process(t, s).CreateRecord(t.Context(), idOf(st, "ann", 2), record, terms)
		wantError(t, "the next login", err, nil)
	})
}

// A login that comes late, or again, when its session was dropped since it had failed, brings back
// neither that nor one that was ended meanwhile.
func TestALateLoginBringsNothingBack(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		failed, record := idOf(st, "ann", 1), Record{Data: []byte("0"), Created: time.Now(), User: "ann"}
		record.name = "ABCDEFGHIJKLMNOP"
		keys, terms := st.keys(failed), Terms{}.withDefaults()
		x := scripting.Exchange{Args: []any{record.name, record.text(nil), terms.expiry(&record, time.Now())}}
		st.prepareLogin(&x, keys, "", &record, terms, time.Now())
		wantError(t, "the command", st.runLogin(t.Context(), x, failed), nil)
		ended := login(t, st, "ann", 2)
		st.dropLater(failed, record.name, false)
		eventually(t, "the failed one is over", func() bool {
			_, err := st.Load(t.Context(), failed, Terms{})
			return err != nil
		})
		endAll(t, st)
		wantError(t, "the command, late", st.runLogin(t.Context(), x, failed), errTaken)
		wantOver(t, st, ended)
		wantOver(t, st, failed)
		wantOnList(t, st)
	})
}

// endOthers is what EndUser sends when it is that time.
func endOthers(t *testing.T, st *Store, stays string, now time.Time) {
	t.Helper()
	tag, rest, _ := cutTag(stays)
	keys := scripting.Keys{st.listKey(tag), st.markKey(tag)}
	_, err := st.runner.Run(t.Context(), endAllScript, keys, now.UnixMilli(), rest)
	wantError(t, "the command", err, nil)
}

// wantOnList checks which of ann's sessions are listed, newest first.
func wantOnList(t *testing.T, st *Store, ids ...string) {
	t.Helper()
	listed, err := st.ListUser(t.Context(), "ann", Terms{})
	var got []string
	for _, l := range listed {
		got = append(got, l.ID)
	}
	if err != nil || !slices.Equal(got, ids) {
		t.Errorf("listed %q, %v, want %q", got, err, ids)
	}
}

// A user's session whose record cannot be read is not replaced by one that does not say whose it is,
// which could never be read: it may get an id without a tag.
func TestADamagedRecordOfAUser(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		id := login(t, st, "ann", 1)
		s.Do(t, "SET", st.recordKey(id), "junk", "PX", 60000)
		for _, save := range []bool{true, false} {
			h, err := st.Take(t.Context(), id, Terms{})
			wantError(t, "Take", err, ErrCorrupt)
			if save {
				wantError(t, "Save", h.Save(t.Context(), []byte("1")), errTag)
			} else {
				wantError(t, "Renew", h.Renew(t.Context(), newID, []byte("1")), nil)
			}
		}
		if r, err := st.Load(t.Context(), newID, Terms{}); err != nil || string(r.Data) != "1" || r.User != "" {
			t.Errorf("%+v, %v", r, err)
		}
		wantOver(t, st, id)
		wantOnList(t, st)
	})
}

// A login beyond MaxSessions ends the ones that are too many also if its reply was lost.
func TestARepeatedLoginEndsWhatIsTooMany(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		first := login(t, process(t, s), "ann", 1)
		st, proxy := tapped(t, s, patient)
		defer st.Close()
		once(t, s, proxy, loginScript, redistest.DropReply)
		id := idOf(st, "ann", 2)
		record := Record{Data: []byte("0"), Created: time.Now(), User: "ann"}
		err := st.CreateRecord(t.Context(), id, record, Terms{MaxSessions: 1})
		wantError(t, "a login", err, nil)
		wantOver(t, st, first)
		wantAlive(t, st, id, "0")
	})
}

// A Renew is no login: it is not refused where the user has too many sessions already, since there may
// be fewer now than there might be when they began. Nor while keys change, by which the session moves
// to another list.
func TestARenewIsNotRefused(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		before, after := encrypted(oldKey, newKey), encrypted(newKey, oldKey)
		terms := Terms{MaxSessions: 1, RefuseLogin: true}
		for name, end := range map[string]*Store{
			"the same keys": New(s.Pool(t, 8), before), "others": New(s.Pool(t, 8), after),
		} {
			st := New(s.Pool(t, 8), before)
			mine, other, third := login(t, st, "ann", 1), login(t, end, "ann", 2), login(t, end, "ann", 3)
			h, err := end.Take(t.Context(), mine, terms)
			wantError(t, name+": Take", err, nil)
			wantError(t, name+": Renew", h.Renew(t.Context(), idOf(end, "ann", 4), []byte("1")), nil)
			for _, id := range []string{other, third} {
				wantAlive(t, end, id, "0")
			}
			record := Record{Data: []byte("0"), Created: time.Now(), User: "ann"}
			err = end.CreateRecord(t.Context(), idOf(end, "ann", 5), record, terms)
			wantError(t, name+": a login", err, ErrTooManySessions)
			s.Do(t, "FLUSHALL")
		}
	})
}

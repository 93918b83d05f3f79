package records

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// isUnclaimed reports whether a process reads the session as unclaimed.
func isUnclaimed(t *testing.T, st *Engine, id string) bool {
	t.Helper()
	loaded, err := st.Load(t.Context(), id, Terms{})
	must(t, err)
	h := takeID(t, st, id)
	defer h.Release(t.Context())
	if h.Record.Unclaimed() != loaded.Unclaimed() {
		t.Errorf("unclaimed is %v to Load, %v to Take", loaded.Unclaimed(), h.Record.Unclaimed())
	}
	return loaded.Unclaimed()
}

// A user's session is unclaimed until somebody comes back with it, whether it is then taken or only read. Renew
// makes it unclaimed again, and EndUser makes the sessions that it spares claimed. A guest's session is never
// unclaimed.
func TestASessionIsClaimedOnce(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "0")
		id := login(t, st, "ann", 1)
		if isUnclaimed(t, st, theID) || !isUnclaimed(t, st, id) {
			t.Error("a guest's session is unclaimed, or a new login is not")
		}
		for range 2 {
			if ended := claim(t, st, id); len(ended) > 0 || isUnclaimed(t, st, id) {
				t.Errorf("a claim has ended %q", ended)
			}
		}
		must(t, takeID(t, st, id).Renew(t.Context(), idOf(st, "ann", 2), []byte("1")))
		if id = idOf(st, "ann", 2); !isUnclaimed(t, st, id) {
			t.Error("a session from a Renew is claimed")
		}
		if _, err := st.EndUser(t.Context(), "ann", id); err != nil || isUnclaimed(t, st, id) {
			t.Errorf("a session that EndUser spares is unclaimed, %v", err)
		}
	})
}

// A hold may claim nothing: a job's, for example, or one whose claim has failed. Then the next hold of its
// process must claim the session, whether or not the first hold has changed it. After a claim, the next hold need
// not.
func TestAHoldThatClaimsNothing(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		id := login(t, st, "ann", 1)
		// next ends a hold while another one waits, and returns the other one.
		next := func(h *Hold, end func(*Hold)) *Hold {
			t.Helper()
			holds := make(chan *Hold)
			go func() { holds <- takeID(t, st, id) }()
			synctest.Wait()
			end(h)
			return <-holds
		}
		saves := func(h *Hold) { save(t, h, "2") }
		touches := func(h *Hold) { must(t, h.Touch(t.Context())) }
		h := takeID(t, st, id)
		for _, end := range []func(*Hold){saves, touches, saves} {
			if h = next(h, end); !h.Record.Unclaimed() || h.first {
				t.Fatalf("unclaimed is %v, of a hold that waited: %v", h.Record.Unclaimed(), !h.first)
			}
		}
		_, err := st.Claim(t.Context(), id, h.Record)
		must(t, err)
		h.Claimed()
		for _, end := range []func(*Hold){saves, touches} {
			if h = next(h, end); h.Record.Unclaimed() {
				t.Error("a session is to be claimed twice")
			}
		}
		h.Release(t.Context())
	})
}

// Of two logins, the newer one ends the older when it is claimed. The list shows only the newer. If the older one
// is claimed first, both live.
func TestALoginReplacesAnUnclaimedOne(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		again := func(n int, instead ...string) string {
			t.Helper()
			must(t, st.CreateRecord(WithLogin(t.Context(), &Login{Instead: instead}), idOf(st, "ann", n), recordOfUser("ann"), Terms{}))
			return idOf(st, "ann", n)
		}
		other := login(t, st, "ann", 1)
		first := login(t, st, "ann", 2)
		second := again(3, first)
		third := again(4, first, idOf(st, "bob", 1)) // replaces the second, too
		wantListed(t, st, "ann", other, third)
		wantAlive(t, st, first, "0")
		if ended := claim(t, st, third); !slices.Equal(ended, []string{second, first}) {
			t.Errorf("ended: %q", ended)
		}
		wantOver(t, st, first)
		wantOver(t, st, second)
		wantListed(t, st, "ann", other, third)

		fourth := again(5, other)
		if ended := claim(t, st, other); len(ended) > 0 {
			t.Errorf("the older one has ended %q", ended)
		}
		if ended := claim(t, st, fourth); len(ended) > 0 {
			t.Errorf("the newer one has ended %q, but the older one was claimed", ended)
		}
		fifth := again(6, third)
		claim(t, st, fifth)
		wantListed(t, st, "ann", other, third, fourth, fifth)
	})
}

// An unclaimed session does not count under RefuseLogin: it gives way. If a session in the middle ends otherwise,
// the sessions that give way to it give way to the one above.
func TestUnclaimedSessionsGiveWay(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st, terms := process(t, s), Terms{MaxSessions: 1, RefuseLogin: true}
		for n := range 4 {
			wantError(t, "a login", tryLogin(t, st, n, terms), nil)
			wantListed(t, st, "ann", idOf(st, "ann", n))
		}
		must(t, st.End(t.Context(), idOf(st, "ann", 2)))
		wantListed(t, st, "ann", idOf(st, "ann", 3))
		wantError(t, "a login", tryLogin(t, st, 4, terms), nil)
		want := []string{idOf(st, "ann", 3), idOf(st, "ann", 1), idOf(st, "ann", 0)}
		if ended := claim(t, st, idOf(st, "ann", 4)); !slices.Equal(ended, want) {
			t.Errorf("ended: %q, want %q", ended, want)
		}
		wantError(t, "a login beside one in use", tryLogin(t, st, 5, terms), ErrTooManySessions)
		wantListed(t, st, "ann", idOf(st, "ann", 4))
	})
}

// An expired session that is still on the list does not make a login fail. Nor does it make an unclaimed session
// count.
func TestUnclaimedSessionsGiveWayBesideAnExpiredOne(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st, terms := process(t, s), Terms{MaxSessions: 1, RefuseLogin: true}
		expired := login(t, st, "ann", 0)
		claim(t, st, expired)
		login(t, st, "ann", 1)
		s.Do(t, "DEL", st.recordKey(expired)) // as the idle timeout does
		wantError(t, "a login", tryLogin(t, st, 2, terms), nil)
		wantListed(t, st, "ann", idOf(st, "ann", 2))
	})
}

// One login may make unrelated sessions give way: here the second, to which the first gives way, and the third.
// If one of them is claimed before the login is, the others still give way to the login.
func TestUnrelatedSessionsGiveWayToOneLogin(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for i, tt := range []struct {
			claimed      int // before the login is claimed; 0: none
			ends, listed []int
			endsLater    []int // when the login is claimed
		}{
			{0, nil, []int{4}, []int{3, 2, 1}},
			{1, nil, []int{1, 4}, []int{3, 2}},
			{2, []int{1}, []int{2, 4}, []int{3}},
			{3, nil, []int{3, 4}, []int{2, 1}},
		} {
			ids := func(numbers ...int) (all []string) {
				for _, n := range numbers {
					all = append(all, idOf(st, "ann", 10*i+n))
				}
				return all
			}
			_, err := st.EndUser(t.Context(), "ann")
			must(t, err)
			login(t, st, "ann", 10*i+1)
			must(t, st.CreateRecord(WithLogin(t.Context(), &Login{Instead: ids(1)}), ids(2)[0], recordOfUser("ann"), Terms{}))
			login(t, st, "ann", 10*i+3)
			wantError(t, "a login", tryLogin(t, st, 10*i+4, Terms{MaxSessions: 1}), nil)
			if tt.claimed > 0 {
				if ended := claim(t, st, ids(tt.claimed)[0]); !slices.Equal(ended, ids(tt.ends...)) {
					t.Errorf("%d is claimed: %q has ended", tt.claimed, ended)
				}
			}
			wantListed(t, st, "ann", ids(tt.listed...)...)
			for _, id := range ids(tt.endsLater...) {
				wantAlive(t, st, id, "0")
			}
			if ended := claim(t, st, ids(4)[0]); !slices.Equal(ended, ids(tt.endsLater...)) {
				t.Errorf("%d was claimed, then the login: %q has ended", tt.claimed, ended)
			}
			wantListed(t, st, "ann", ids(tt.listed...)...)
		}
	})
}

// A login that replaces one session does not make another one give way.
func TestALoginReplacesNoMoreThanItMust(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st, terms := process(t, s), Terms{MaxSessions: 2, RefuseLogin: true}
		elsewhere, first := login(t, st, "ann", 0), login(t, st, "ann", 1)
		second := idOf(st, "ann", 2)
		must(t, st.CreateRecord(WithLogin(t.Context(), &Login{Instead: []string{first}}), second, recordOfUser("ann"), terms))
		if ended := claim(t, st, second); !slices.Equal(ended, []string{first}) {
			t.Errorf("ended: %q, want %q", ended, first)
		}
		wantListed(t, st, "ann", elsewhere, second)
	})
}

// A claim does not report sessions that had ended before.
func TestAClaimNamesWhatItHasEnded(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st, terms := process(t, s), Terms{MaxSessions: 1}
		for n := range 4 {
			wantError(t, "a login", tryLogin(t, st, n, terms), nil)
		}
		must(t, st.End(t.Context(), idOf(st, "ann", 1)))
		s.Do(t, "DEL", st.recordKey(idOf(st, "ann", 0))) // as the idle timeout does
		if ended := claim(t, st, idOf(st, "ann", 3)); !slices.Equal(ended, []string{idOf(st, "ann", 2)}) {
			t.Errorf("ended: %q", ended)
		}
		wantListed(t, st, "ann", idOf(st, "ann", 3))
	})
}

// A session that a login replaces ends otherwise, after the mark is read and before the claim. The claim ends the
// rest.
func TestAClaimEndsTheRestOfWhatItReplaces(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st, terms := process(t, s), Terms{MaxSessions: 1}
		for n := range 3 {
			wantError(t, "a login", tryLogin(t, st, n, terms), nil)
		}
		newest := idOf(st, "ann", 2)
		read, err := st.Load(t.Context(), newest, Terms{})
		must(t, err)
		must(t, st.End(t.Context(), idOf(st, "ann", 1)))
		other := login(t, st, "ann", 3) // writes the mark anew
		ended, err := st.Claim(t.Context(), newest, read)
		if err != nil || !slices.Equal(ended, []string{idOf(st, "ann", 0)}) {
			t.Errorf("ended: %q, %v", ended, err)
		}
		wantListed(t, st, "ann", newest, other)
	})
}

// A session that gives way is claimed after the mark is read and before the newer session is claimed. It lives.
// The sessions that give way to it have ended with its own claim.
func TestAClaimEndsNothingThatWasClaimedMeanwhile(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st, terms := process(t, s), Terms{MaxSessions: 1}
		for n := range 3 {
			wantError(t, "a login", tryLogin(t, st, n, terms), nil)
		}
		older, newest := idOf(st, "ann", 1), idOf(st, "ann", 2)
		read, err := st.Load(t.Context(), newest, Terms{})
		must(t, err)
		claim(t, st, older)
		if ended, err := st.Claim(t.Context(), newest, read); err != nil || len(ended) > 0 {
			t.Errorf("ended: %q, %v", ended, err)
		}
		wantListed(t, st, "ann", older, newest)
	})
}

// A mark has room for sixteen unclaimed sessions. Sessions beyond that count as claimed: no other login ends
// them.
func TestAMarkHasRoomForSixteenUnclaimedSessions(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for n := range 20 {
			login(t, st, "ann", n)
		}
		for n := range 20 {
			if got := isUnclaimed(t, st, idOf(st, "ann", n)); got != (n >= 4) {
				t.Errorf("session %d is unclaimed: %v", n, got)
			}
		}
		mark, _ := s.Get(t, st.markKey("nokXbrZKaxmiM5KT"))
		if len(mark) > 420 {
			t.Errorf("the mark has %d bytes", len(mark))
		}
	})
}

// A claim or a login that is done twice, or loses its reply, has the same effect as once.
func TestALateClaimEndsNothingNew(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, proxy := tapped(t, s, patient)
		first := login(t, st, "ann", 1)
		once(t, s, proxy, loginScript, redistest.DropReply)
		must(t, st.CreateRecord(WithLogin(t.Context(), &Login{Instead: []string{first}}), idOf(st, "ann", 2), recordOfUser("ann"), Terms{}))
		second := idOf(st, "ann", 2)
		var claims []redistest.Command
		proxy.Inject(func(cmd redistest.Command) redistest.Fault {
			if runs(cmd, claimScript) {
				claims = append(claims, cmd)
			}
			return redistest.Pass
		})
		if ended := claim(t, st, second); !slices.Equal(ended, []string{first}) || isUnclaimed(t, st, second) {
			t.Errorf("ended: %q", ended)
		}
		third := login(t, st, "ann", 3)
		again(t, s, claims...)
		wantAlive(t, st, third, "0")
		if !isUnclaimed(t, st, third) {
			t.Error("the copy of the claim has claimed another session")
		}
		if len(claims) == 0 {
			t.Error("no claim was seen")
		}
	})
}

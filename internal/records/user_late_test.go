package records

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A login that fails with an unknown outcome leaves no session that would be listed or counted. If the login is
// done late, or again, it brings back neither that session nor one that was ended meanwhile.
func TestALateLoginBringsNothingBack(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, proxy := tapped(t, s, patient)
		other := process(t, s)
		knowing(st)
		learn(t, s)
		var logins []redistest.Command
		proxy.Inject(func(cmd redistest.Command) redistest.Fault {
			if !runs(cmd, loginScript) {
				return redistest.Pass
			}
			logins = append(logins, cmd)
			return redistest.DropReply
		})
		terms := Terms{MaxSessions: 1, RefuseLogin: true}
		wantError(t, "a login", tryLogin(t, st, 1, terms), ErrUnavailable)
		failed := idOf(st, "ann", 1)
		redistest.Eventually(t, "the session is over", func() bool {
			_, err := st.Load(t.Context(), failed, Terms{})
			return errors.Is(err, ErrGone)
		})
		wantListed(t, other, "ann")
		wantError(t, "the next login", tryLogin(t, other, 2, terms), nil)
		endAll(t, other)
		again(t, s, logins...)
		wantOver(t, other, idOf(st, "ann", 2))
		wantOver(t, other, failed)
		wantListed(t, other, "ann")
	})
}

// A login whose reply was lost is done once, even if it ends surplus sessions.
func TestARepeatedLoginEndsWhatIsTooMany(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		first := login(t, process(t, s), "ann", 1)
		claim(t, process(t, s), first)
		st, proxy := tapped(t, s, patient)
		once(t, s, proxy, loginScript, redistest.DropReply)
		wantError(t, "a login", tryLogin(t, st, 2, Terms{MaxSessions: 1}), nil)
		wantOver(t, st, first)
		wantAlive(t, st, idOf(st, "ann", 2), "0")
	})
}

// A Renew is not a login. It is not refused if the user already has too many sessions, since MaxSessions may have
// been lowered. Nor is it refused if keys change and the session moves to another list.
func TestARenewIsNotRefused(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		before, after := encrypted(oldKey, newKey), encrypted(newKey, oldKey)
		terms := Terms{MaxSessions: 1, RefuseLogin: true}
		for name, end := range map[string]*Engine{
			"the same keys": onPool(s.Pool(t, 8), before), "others": onPool(s.Pool(t, 8), after),
		} {
			st := onPool(s.Pool(t, 8), before)
			mine, other, third := login(t, st, "ann", 1), login(t, end, "ann", 2), login(t, end, "ann", 3)
			claim(t, end, other)
			claim(t, end, third)
			h, _, err := end.Take(t.Context(), mine, terms)
			wantError(t, name+": Take", err, nil)
			wantError(t, name+": Renew", h.Renew(t.Context(), idOf(end, "ann", 4), []byte("1")), nil)
			wantAlive(t, end, other, "0")
			wantAlive(t, end, third, "0")
			wantError(t, name+": a login", tryLogin(t, end, 5, terms), ErrTooManySessions)
			s.Do(t, "FLUSHALL")
		}
	})
}

// Sessions change during ListUser. A session that gets new IDs is listed once, by the last ID. A session that is
// ended is not listed.
func TestListUserWhileSessionsChange(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		other := process(t, s)
		a, b := idOf(other, "ann", 1), idOf(other, "ann", 2)
		ids := []string{a}
		for n := range 20 {
			ids = append(ids, idOf(other, "ann", 10+n))
		}
		for what, tt := range map[string]struct {
			change func(n int) // called before a record is read, first with 0
			want   []string
		}{
			"nothing": {func(int) {}, []string{a, b}},
			"a new ID at each reading": {func(n int) {
				if n < len(ids)-1 {
					wantError(t, "Renew", takeID(t, other, ids[n]).Renew(t.Context(), ids[n+1], []byte("1")), nil)
				}
			}, []string{b, ids[len(ids)-1]}},
			"all but one end": {func(n int) {
				if n == 0 {
					endAll(t, other, b)
				}
			}, []string{b}},
		} {
			s.Do(t, "FLUSHALL")
			login(t, other, "ann", 1)
			login(t, other, "ann", 2)
			st, proxy := tapped(t, s, patient)
			changes := 0
			proxy.Inject(func(cmd redistest.Command) redistest.Fault {
				if cmd.Name == "GETRANGE" && !strings.HasSuffix(cmd.Args[0], ".user") { // after the list was read
					tt.change(changes)
					changes++
				}
				return redistest.Pass
			})
			if wantListed(t, st, "ann", tt.want...); changes == 0 {
				t.Errorf("%s: no record was read", what)
			}
		}
	})
}

// If a user's list seems to be lost, a login that comes meanwhile is not ended.
func TestListUserEndsNoLogin(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		other := process(t, s)
		wantError(t, "End", other.End(t.Context(), login(t, other, "ann", 1)), nil) // the mark remains
		st, proxy := tapped(t, s, patient)
		next := ""
		proxy.Inject(func(cmd redistest.Command) redistest.Fault {
			if strings.HasPrefix(cmd.Name, "EVAL") && next == "" {
				next = login(t, other, "ann", 2)
			}
			return redistest.Pass
		})
		_, err := st.ListUser(t.Context(), "ann", Terms{})
		if wantError(t, "ListUser", err, nil); next == "" {
			t.Fatal("no script was asked")
		}
		wantAlive(t, other, next, "0")
	})
}

// An EndUser whose reply was lost is repeated, but done once: a login that came meanwhile stays. A copy that is
// done late, after another EndUser, neither ends a session nor brings one back.
func TestALateEndUser(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		other := process(t, s)
		a, b := login(t, other, "ann", 1), login(t, other, "ann", 2)
		learn(t, s)
		st, proxy := tapped(t, s, patient)
		knowing(st)
		var sent []redistest.Command
		meanwhile := ""
		proxy.Inject(func(cmd redistest.Command) redistest.Fault {
			if !runs(cmd, endAllScript) {
				return redistest.Pass
			}
			sent = append(sent, cmd)
			if len(sent) == 1 {
				return redistest.DropReply
			}
			if meanwhile == "" {
				meanwhile = login(t, other, "ann", 3)
			}
			return redistest.Pass
		})
		if endAll(t, st, b); meanwhile == "" {
			t.Fatal("EndUser was not repeated")
		}
		wantOver(t, other, a)
		wantListed(t, other, "ann", b, meanwhile)

		endAll(t, other, b)
		later := login(t, other, "ann", 4)
		again(t, s, sent...)
		for _, id := range []string{a, meanwhile} {
			wantOver(t, other, id)
		}
		wantListed(t, other, "ann", b, later)
		wantAlive(t, other, b, "0")
	})
}

// An EndUser is remembered for as long as a copy of it may be done, to the second. So a copy ends no session that
// began since. Redis counts whole seconds, and here the process believes Redis's clock to be as far ahead as the
// scripts accept.
func TestAnEndUserIsRememberedWhileACopyMayBeDone(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		o := Options{Lease: time.Minute, Timeout: time.Minute}
		st, p := tapped(t, s, o)
		other := knowing(onPool(s.Pool(t, 8), o))
		learn(t, s)
		now := time.Now()
		lapse(now.Truncate(time.Second).Add(1900 * time.Millisecond).Sub(now)) // the last tenth of a second
		now = time.Now()
		st.clock.learn(now.Add(30*time.Second).UnixMicro(), now)
		endAll(t, st)
		copies := slices.DeleteFunc(p.Commands(), func(c redistest.Command) bool { return !runs(c, endAllScript) })
		lapse(59*time.Second + 300*time.Millisecond)
		endAll(t, other) // makes the mark forget what is over
		lapse(100 * time.Millisecond)
		id := login(t, other, "ann", 1)
		lapse(100 * time.Millisecond)
		again(t, s, copies...)
		if len(copies) == 0 || !isAlive(t, other, id) {
			t.Errorf("%d copies of an EndUser have ended a session that began after it", len(copies))
		}
	})
}

// A login that failed is removed, however late Redis executes it, even long after a lease. Otherwise its session
// would be on the list of its user, and nobody would have its cookie.
func TestALoginThatFailedIsRemovedHoweverLateItIsDone(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, p := tapped(t, s, Options{Lease: 500 * time.Millisecond, Timeout: 20 * time.Second})
		knowing(st)
		learn(t, s)
		var late []redistest.Command
		p.Inject(func(cmd redistest.Command) redistest.Fault {
			if runs(cmd, loginScript) {
				late = append(late, cmd)
				return redistest.DropCommand
			}
			return redistest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		wantError(t, "the login", st.CreateRecord(ctx, idOf(st, "ann", 1), recordOfUser("ann"), lasting), ErrUnavailable)
		p.Inject(nil)
		lapse(4 * time.Second)
		again(t, s, late...)
		if key := st.recordKey(idOf(st, "ann", 1)); len(late) == 0 || !s.Exists(t, key) {
			t.Fatal("the login was not done late")
		}
		lapse(time.Minute)
		wantListed(t, process(t, s), "ann")
	})
}

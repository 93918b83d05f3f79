package records

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// lateness says how late a copy comes, after the call that it copies has returned: 20 moments.
var lateness = []time.Duration{
	time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second,
	2 * time.Second, 5 * time.Second, 10 * time.Second, 19 * time.Second, 21 * time.Second, 29 * time.Second,
	31 * time.Second, 59 * time.Second, 61 * time.Second, 2 * time.Minute, 5 * time.Minute, 20 * time.Minute,
	time.Hour - time.Second, time.Hour + time.Second, 2 * time.Hour,
}

// clocks are the errors of what a process believes Redis's clock to be.
var clocks = []time.Duration{-3 * time.Hour, -time.Second, 0, time.Second, 3 * time.Hour}

// lasting are terms of a session that outlasts the latest copy.
var lasting = Terms{TTL: 12 * time.Hour}

// copied runs f for each clock and each lateness, with a user of its own. The store believes in a wrong clock.
// The function copies waits until the copies are due, and then repeats all runs of these scripts that the store
// has sent.
func copied(t *testing.T, f func(t *testing.T, s *redistest.Server, st *Engine, user string, copies func()), scripts ...*scripting.Script) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		for _, wrong := range clocks {
			for _, late := range lateness {
				st, proxy := tapped(t, s, patient)
				now := time.Now()
				st.clock.learn(now.Add(wrong).UnixMicro(), now)
				var sent []redistest.Command
				proxy.Inject(func(cmd redistest.Command) redistest.Fault {
					for _, script := range scripts {
						if runs(cmd, script) {
							sent = append(sent, cmd)
						}
					}
					return redistest.Pass
				})
				user := fmt.Sprintf("clock %v, late by %v", wrong, late)
				f(t, s, st, user, func() {
					if len(sent) == 0 {
						t.Fatal("nothing was sent")
					}
					lapse(late)
					again(t, s, sent...)
				})
				must(t, st.Close())
				if t.Failed() {
					t.Fatal(user)
				}
			}
		}
	})
}

// loginFor begins the n-th session of a user that lasts.
func loginFor(t *testing.T, st *Engine, user string, n int) string {
	t.Helper()
	id := idOf(st, user, n)
	must(t, st.CreateRecord(t.Context(), id, recordOfUser(user), lasting))
	return id
}

// isAlive reports whether a session is alive.
func isAlive(t *testing.T, st *Engine, id string) bool {
	_, _, err := st.Peek(t.Context(), id, lasting)
	return err == nil
}

// A copy of EndUser ends no session that began after it, however late the copy comes.
func TestACopyOfEndUserEndsNothingThatBeganAfterIt(t *testing.T) {
	copied(t, func(t *testing.T, s *redistest.Server, st *Engine, user string, copies func()) {
		before, spared := loginFor(t, st, user, 1), loginFor(t, st, user, 2)
		_, err := st.EndUser(t.Context(), user, spared)
		must(t, err)
		h, _, err := st.Take(t.Context(), spared, lasting)
		must(t, err)
		renewed := idOf(st, user, 3)
		must(t, h.Renew(t.Context(), renewed, []byte("1")))
		after := loginFor(t, st, user, 4)
		copies()
		if isAlive(t, st, before) || !isAlive(t, st, renewed) || !isAlive(t, st, after) {
			t.Errorf("alive: before %v, spared and renewed %v, after %v", isAlive(t, st, before), isAlive(t, st, renewed), isAlive(t, st, after))
		}
		_, err = st.EndUser(t.Context(), user, renewed, after) // this may make the mark forget the first EndUser
		must(t, err)
		last := loginFor(t, st, user, 5)
		copies()
		if !isAlive(t, st, renewed) || !isAlive(t, st, after) || !isAlive(t, st, last) {
			t.Errorf("after two EndUsers: renewed %v, after %v, last %v", isAlive(t, st, renewed), isAlive(t, st, after), isAlive(t, st, last))
		}
	}, endAllScript)
}

// A copy of a login, or of the creation of a guest's session, brings back no session that has ended, however late
// the copy comes, and however the session ended.
func TestACopyOfABeginningBringsNothingBack(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, st *Engine, user, id string){
		"Destroy": func(t *testing.T, st *Engine, _, id string) {
			must(t, takeID(t, st, id).Destroy(t.Context()))
		},
		"End": func(t *testing.T, st *Engine, _, id string) { must(t, st.End(t.Context(), id)) },
		"EndUser": func(t *testing.T, st *Engine, user, id string) {
			_, err := st.EndUser(t.Context(), user)
			must(t, err)
			loginFor(t, st, user, 9)
		},
		"EndUser but for another": func(t *testing.T, st *Engine, user, id string) {
			other := loginFor(t, st, user, 8)
			_, err := st.EndUser(t.Context(), user, other)
			must(t, err)
		},
	} {
		t.Run("a login/"+name, func(t *testing.T) {
			copied(t, func(t *testing.T, s *redistest.Server, st *Engine, user string, copies func()) {
				id := loginFor(t, st, user, 1)
				end(t, st, user, id)
				if copies(); isAlive(t, st, id) {
					t.Error("the copy has brought the session back")
				}
				all, err := st.ListUser(t.Context(), user, lasting)
				if must(t, err); slices.ContainsFunc(all, func(l Listed) bool { return l.ID == id }) {
					t.Error("the session is on the list")
				}
			}, loginScript)
		})
		if name == "EndUser" || name == "EndUser but for another" {
			continue
		}
		t.Run("a guest/"+name, func(t *testing.T) {
			n := 0
			copied(t, func(t *testing.T, s *redistest.Server, st *Engine, user string, copies func()) {
				n++
				id := fmt.Sprintf("%022d", n)
				must(t, st.Create(t.Context(), id, []byte("1"), lasting))
				end(t, st, user, id)
				if copies(); isAlive(t, st, id) {
					t.Error("the copy has brought the session back")
				}
			}, createScript)
		})
	}
}

// An expired session leaves no tombstone. A copy does not bring it back either, even if the process believes
// Redis's clock to be so little ahead that the script accepts it.
func TestACopyBringsNothingBackThatHasTimedOut(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		for n, ahead := range []time.Duration{0, 400 * time.Millisecond} {
			for _, user := range []string{"", "ann"} {
				st, proxy := tapped(t, s, patient)
				now := time.Now()
				st.clock.learn(now.Add(ahead).UnixMicro(), now)
				var sent []redistest.Command
				proxy.Inject(func(cmd redistest.Command) redistest.Fault {
					sent = append(sent, cmd)
					return redistest.Pass
				})
				id, r := fmt.Sprintf("%022d", n), Record{Data: []byte("1"), Created: time.Now()}
				if user != "" {
					id, r = idOf(st, user, n), recordOfUser(user)
				}
				must(t, st.CreateRecord(t.Context(), id, r, Terms{TTL: time.Second}))
				lapse(time.Second + time.Millisecond)
				if again(t, s, sent...); isAlive(t, st, id) {
					t.Errorf("the session of %q is alive again, with a clock that was ahead by %v", user, ahead)
				}
				must(t, st.Close())
			}
		}
	})
}

// A login is refused if its request arrived before an EndUser was done. A login whose request came later is
// accepted, in any process, however wrong the process's clock is. A request is also refused if it is older than
// what Redis remembers.
func TestALoginThatArrivedBeforeEndUserIsRefused(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		for i, wrong := range clocks {
			ended, st := process(t, s), process(t, s)
			now := time.Now()
			st.clock.learn(now.Add(wrong).UnixMicro(), now)
			user, n := fmt.Sprint("user ", i), 0
			from := func(what string, arrived time.Time, want error) {
				t.Helper()
				n++
				err := st.CreateRecord(WithLogin(t.Context(), &Login{Arrived: arrived}), idOf(st, user, n), recordOfUser(user), lasting)
				wantError(t, fmt.Sprintf("clock %v, %s", wrong, what), err, want)
			}
			early := time.Now()
			from("before anything ended", early, nil)
			lapse(time.Millisecond)
			_, err := ended.EndUser(t.Context(), user)
			must(t, err)
			from("at once", time.Now(), nil)
			from("before", early, ErrGone)
			lapse(59 * time.Minute)
			from("before, and kept for an hour", early, ErrGone)
			from("after", time.Now(), nil)
			lapse(2 * time.Minute)
			from("before, and forgotten", early, ErrGone)
			from("after all", time.Now().Add(-59*time.Minute), nil)
		}
	})
}

// After Redis's clock was set back by hours, a user whose sessions were ended can log in again. Only the first
// login may be refused, since nobody knows whether its request came before the end.
func TestAClockThatWasSetBackCostsOneLogin(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, early := process(t, s), WithLogin(t.Context(), &Login{Arrived: time.Now()})
		login(t, st, "ann", 1)
		lapse(time.Millisecond)
		endAll(t, st)
		// The time that Redis noted is now three hours in the future.
		tag, _, _ := cutTag(idOf(st, "ann", 1))
		key := st.markKey(tag)
		mark, _ := s.Get(t, key)
		epoch, ended, _ := strings.Cut(mark, ",")
		seconds, rest, _ := strings.Cut(ended, "+")
		then, err := strconv.Atoi(seconds)
		must(t, err)
		s.Do(t, "SET", key, fmt.Sprintf("%s,%d+%s", epoch, then+3*60*60, rest), "KEEPTTL")

		lapse(time.Second)
		_ = tryLogin(t, st, 2, lasting)
		lapse(time.Second)
		wantError(t, "a login", tryLogin(t, st, 3, lasting), nil)
		wantError(t, "a login from before", st.CreateRecord(early, idOf(st, "ann", 4), recordOfUser("ann"), lasting), ErrGone)
	})
}

// A session that EndUser spares may get a new ID afterwards, even in the request that called EndUser.
func TestARenewAfterEndUserThatSparesItIsNotRefused(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, early := process(t, s), time.Now()
		h := takeID(t, st, login(t, st, "ann", 1))
		lapse(time.Millisecond)
		endAll(t, st, idOf(st, "ann", 1))
		must(t, h.Renew(WithLogin(t.Context(), &Login{Arrived: early}), idOf(st, "ann", 2), []byte("1")))
		wantListed(t, st, "ann", idOf(st, "ann", 2))
	})
}

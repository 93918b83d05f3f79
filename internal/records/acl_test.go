package records

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// leastRights are the rights that every Redis user needs.
var leastRights = []any{
	"on", ">pw", "resetkeys", "~app:*", "resetchannels", "-@all",
	"+ping", "+get", "+mget", "+getrange", "+set", "+del", "+pexpire", "+pttl", "+rename", "+time", "+eval", "+evalsha",
}

// The rights that logins of users need in addition.
var userRights = []any{"+zscore", "+zadd", "+zrem", "+zcard", "+zrange", "+zremrangebyscore"}

// The rights with which a process that waits is notified.
var wakeRights = []any{"&app:wake:*", "+publish", "+subscribe", "+pubsub|numsub"}

// The line to copy in REDIS.md has all of these rights, and no others.
func TestRightsAreAsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../store/REDIS.md")
	must(t, err)
	line := regexp.MustCompile(`(?m)^    ACL SETUSER latchkey (.*)$`).FindStringSubmatch(string(page))
	if line == nil {
		t.Fatal("REDIS.md has no line to copy")
	}
	documented := strings.Fields(strings.NewReplacer(">PASSWORD", ">pw", "latchkey:", "app:").Replace(line[1]))
	tested := strings.Fields(strings.Trim(fmt.Sprint(slices.Concat(leastRights, userRights, wakeRights)), "[]"))
	slices.Sort(documented)
	slices.Sort(tested)
	if !slices.Equal(documented, tested) {
		t.Errorf("REDIS.md has %q, tested are %q", documented, tested)
	}
}

// The least rights suffice. Without the rights for users a login is refused, for certain.
func TestLeastRightsSuffice(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	s.Do(t, "ACL", append([]any{"SETUSER", "app"}, leastRights...)...)
	// The lease is extended after a third of it. The rest is for a busy machine.
	o := Options{Prefix: "app:", Lease: 9 * time.Second, Timeout: patient.Timeout}
	st, ctx := opened(t, "redis://app:pw@"+s.Addr, o), t.Context()
	useEverything(t, s, st)
	wantError(t, "a login", tryLogin(t, st, 1, Terms{}), transport.ErrRefused)

	s.Do(t, "ACL", append([]any{"SETUSER", "app"}, userRights...)...)
	must(t, tryLogin(t, st, 1, Terms{}))
	must(t, takeID(t, st, idOf(st, "ann", 1)).Renew(ctx, idOf(st, "ann", 2), []byte("1")))
	wantListed(t, st, "ann", idOf(st, "ann", 2))
	must(t, tryLogin(t, st, 3, Terms{}))
	wantNow(t, st, idOf(st, "ann", 1), idOf(st, "ann", 2))
	must(t, st.End(ctx, idOf(st, "ann", 3)))
	endAll(t, st)
	wantOver(t, st, idOf(st, "ann", 2))
}

// If a right is missing, Redis aborts a script and keeps what the script has done so far. Once the user has the
// right, the next claim does the rest.
func TestAClaimThatWasBrokenOffIsDoneAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st := opened(t, "redis://app:pw@"+s.Addr, Options{Prefix: "app:", Timeout: patient.Timeout})
	for n, right := range []string{"zscore", "pttl", "set", "zrem"} {
		s.Do(t, "ACL", append([]any{"SETUSER", "app"}, slices.Concat(leastRights, userRights)...)...)
		user := "ann" + right
		old, id := login(t, st, user, 2*n), idOf(st, user, 2*n+1)
		must(t, st.CreateRecord(WithLogin(t.Context(), &Login{Instead: []string{old}}), id, recordOfUser(user), Terms{}))
		r, err := st.Load(t.Context(), id, Terms{})
		must(t, err)
		s.Do(t, "ACL", "SETUSER", "app", "-"+right)
		_, err = st.Claim(t.Context(), id, r)
		wantError(t, "a claim without "+right, err, ErrUnavailable)
		s.Do(t, "ACL", "SETUSER", "app", "+"+right)
		if ended, err := st.Claim(t.Context(), id, r); err != nil || !slices.Equal(ended, []string{old}) {
			t.Errorf("without %s, and then with it: ended %q, %v", right, ended, err)
		}
		wantListed(t, st, user, id)
		_, _, err = st.Peek(t.Context(), old, Terms{})
		wantError(t, "the session that gave way, after a claim without "+right, err, ErrGone)
	}
}

func useEverything(t *testing.T, s *redistest.Server, st *Engine) {
	ctx := t.Context()
	must(t, st.Ping(ctx))
	create(t, st, "1")
	h := take(t, st)
	waitUntilExtended(t, s, "app:{"+theID+"}.lock")
	must(t, h.Save(ctx, []byte("2")))
	must(t, take(t, st).Save(ctx, []byte(large("2"))))
	must(t, take(t, st).Touch(ctx))
	take(t, st).Release(ctx)
	read, err := st.Load(ctx, theID, Terms{})
	must(t, err)
	must(t, st.Touch(ctx, theID, watched))
	wantNow(t, st, theID, theID)
	_, err = st.SaveLoaded(ctx, theID, read, text(large("2")), Terms{})
	must(t, err)
	must(t, take(t, st).Renew(ctx, newID, []byte("3")))
	_, _, err = st.Take(ctx, theID, Terms{})
	wantError(t, "Take of a renewed ID", err, ErrGone)
	h, _, err = st.Take(ctx, newID, Terms{})
	must(t, err)
	wantError(t, "Renew to an ID in use", h.Renew(ctx, theID, []byte("4")), ErrCorrupt)
	h, _, err = st.Take(ctx, newID, Terms{})
	must(t, err)
	must(t, h.Destroy(ctx))
	_, err = st.Load(ctx, "unknown", Terms{})
	wantError(t, "Load of an unknown ID", err, ErrNotFound)
	_, _, err = st.Take(ctx, "unknown", Terms{})
	wantError(t, "Take of an unknown ID", err, ErrNotFound)
}

// waitUntilExtended returns when the lease has been renewed.
func waitUntilExtended(t *testing.T, s *redistest.Server, lock string) {
	t.Helper()
	last := expiry(t, s, lock)
	redistest.Eventually(t, "the lease is extended", func() bool {
		before := last
		last = expiry(t, s, lock)
		return last > before
	})
}

package records

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// The holder of a session that was ended is told within a third of a lease, even if MaxHold allows no further
// renewal.
func TestALeaseOfAnEndedSession(t *testing.T) {
	for name, tt := range map[string]struct{ lease, maxHold, held time.Duration }{
		"the first of many leases":    {10 * time.Second, time.Minute, 0},
		"the last of many":            {3 * time.Second, 5 * time.Second, 2100 * time.Millisecond},
		"the end of the last of many": {3 * time.Second, 5 * time.Second, 3900 * time.Millisecond},
		"a single lease":              {3 * time.Second, 3 * time.Second, 0},
		"a single, longer lease":      {10 * time.Second, 10 * time.Second, 0},
		"the end of a single lease":   {10 * time.Second, 10 * time.Second, 5 * time.Second},
	} {
		t.Run(name, fakeTime(func(t *testing.T, s *redistest.Server) {
			st := onPool(s.Pool(t, 8), Options{Lease: tt.lease, Timeout: patient.Timeout})
			for n, end := range []func(id string) error{
				func(id string) error { return st.End(t.Context(), id) },
				func(string) error { _, err := st.EndUser(t.Context(), "ann"); return err },
			} {
				id := login(t, st, "ann", n)
				h, _, err := st.Take(t.Context(), id, Terms{MaxHold: tt.maxHold})
				must(t, err)
				lost := lossOf(t, h)
				lapse(tt.held)
				wantError(t, "before the end", context.Cause(lost), nil)
				wantError(t, "ending it", end(id), nil)
				ended := time.Now()
				<-lost.Done()
				if took := time.Since(ended); took > tt.lease/3+10*time.Millisecond {
					t.Errorf("the holder was told after %v, with a lease of %v", took, tt.lease)
				}
				if why := context.Cause(lost); !errors.Is(why, ErrLost) || !strings.Contains(why.Error(), "ended") {
					t.Errorf("the holder was told: %v", why)
				}
				h.Release(t.Context())
			}
		}))
	}
}

// SaveLoaded cannot save a session that was loaded before its end either.
func TestSaveLoadedAfterTheEnd(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for n, but := range []string{idOf(st, "ann", 9), ""} { // 9 stays alive, or none does
			login(t, st, "ann", 9+n)
			id := login(t, st, "ann", n)
			read, err := st.Load(t.Context(), id, Terms{})
			wantError(t, "Load", err, nil)
			endAll(t, st, but)
			_, err = st.SaveLoaded(t.Context(), id, read, text("1"), Terms{})
			wantError(t, "SaveLoaded", err, ErrConflict)
			wantOver(t, st, id)
		}
	})
}

// If Redis does not permit EndUser to write, EndUser ends all of the sessions or none.
func TestAnEndUserThatMayNotWriteIsNotHalfDone(t *testing.T) {
	t.Parallel()
	for name, spares := range map[string]bool{"all": false, "all but one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Real(t)
			st := process(t, s)
			a, b := login(t, st, "ann", 1), login(t, st, "ann", 2)
			var except []string
			if spares {
				except = []string{a}
			}
			s.Do(t, "ACL", "SETUSER", "default", "-set")
			_, err := st.EndUser(t.Context(), "ann", except...)
			s.Do(t, "ACL", "SETUSER", "default", "+set")
			wantError(t, "EndUser", err, ErrUnavailable)
			if isAlive(t, st, b) {
				wantListed(t, st, "ann", a, b)
			} else if wantListed(t, st, "ann", except...); spares {
				wantAlive(t, st, a, "0")
			}
		})
	}
}

// A request does not see a session that ended before the request came, even if the reply to an earlier commit
// arrives after that. The holder's next commit would fail, but the request might only have read.
func TestWhoComesAfterTheEndFindsNothing(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		client := &slowReplies{Client: transport.NewRedigo(s.Pool(t, 4), patient.Timeout), held: make(chan struct{})}
		st, other := New(client, patient), process(t, s)
		st.maxUnheard = time.Hour
		id := login(t, other, "ann", 1)
		first := takeID(t, st, id)
		early := begin(func() error {
			h, _, err := st.Take(t.Context(), id, Terms{})
			must(t, err)
			lapse(10 * time.Millisecond)
			return h.Touch(t.Context())
		})
		synctest.Wait()
		client.slow.Store(true)
		one := saving(t, first, "1")
		lapse(time.Millisecond)
		wantError(t, "the end", other.End(t.Context(), id), nil)
		lapse(time.Millisecond)
		late := begin(func() error {
			h, _, err := st.Take(t.Context(), id, Terms{})
			if err == nil {
				h.Release(t.Context())
			}
			return err
		})
		lapse(time.Millisecond)
		close(client.held)
		wantError(t, "the commit before the end", one.wait(), nil)
		wantError(t, "who came before the end", early.wait(), ErrLost)
		wantError(t, "who came after it", late.wait(), ErrGone)
	})
}

// slowReplies holds back the replies that arrive while it is slow.
type slowReplies struct {
	transport.Client
	slow atomic.Bool
	held chan struct{}
}

func (c *slowReplies) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	slow := c.slow.CompareAndSwap(true, false)
	replies, err := c.Client.Do(ctx, key, commands...)
	if slow {
		<-c.held
	}
	return replies, err
}

// Redis keeps the records of ended sessions for a minute more, and not until they expire by themselves, however many
// they are.
func TestTheRecordsOfAUsersEndedSessionsAreForgottenInAMinute(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for n := range tidiedAtOnce + 1 {
			login(t, st, "ann", n)
		}
		endAll(t, st)
		lapse(tombstoneTime + time.Second)
		for n := range tidiedAtOnce + 1 {
			if key := st.recordKey(idOf(st, "ann", n)); s.Exists(t, key) {
				t.Fatalf("session %d is kept for %v", n, expiry(t, s, key))
			}
		}
	})
}

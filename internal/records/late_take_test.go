package records

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// A client repeats a take whose connection broke. The first copy may reach Redis much later, after the lock was
// released and others have had it. It gives the lock to its token again, but must not give that token the right
// to write.

// P3: all commands of a request that has ended are done again after others have written: each command alone, and
// then all in their order.
func TestLateTakeAndCommitChangeNothing(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]func(string) string{"small": func(n string) string { return n }, "large": large} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				a, p := tapped(t, s, patient)
				b := process(t, s)
				create(t, b, "0")
				save(t, take(t, a), text("1"))
				late := p.Commands()
				save(t, take(t, b), text("2"))
				save(t, take(t, a), text("3"))
				save(t, take(t, b), text("4"))
				for _, cmd := range late {
					again(t, s, cmd)
					wantData(t, s, text("4"))
				}
				s.Do(t, "DEL", theLock) // the leases that late takes have begun expire
				again(t, s, late...)
				wantData(t, s, text("4"))
			})
		})
	}
}

// P7: a take is done again after a later hold of the same process has extended the lock. It does not shorten the
// lock, so no other process acquires it while that hold lasts.
func TestALateTakeDoesNotShortenTheLock(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		a, p := tapped(t, s, patient)
		a.maxUnheard = time.Hour // the next hold begins at once, with the same token
		create(t, process(t, s), "0")
		s.Do(t, "PEXPIRE", theRecord, 2500) // taken by a script
		first := takeBy(t, a, Terms{MaxHold: time.Second})
		late := slices.DeleteFunc(p.Commands(), func(c redistest.Command) bool { return !runs(c, takeScript) })
		next := guests(t, a, 1, Terms{})[0]
		first.Release(t.Context())
		second := next.holds(t, "0")
		redistest.Eventually(t, "the lock is extended", func() bool { return expiry(t, s, theLock) > 2*time.Second })
		again(t, s, late...)
		if left := expiry(t, s, theLock); len(late) == 0 || left < 2*time.Second {
			t.Errorf("%d copies of a take leave the lock %v", len(late), left)
		}
		save(t, second, "1")
	})
}

// A save is refused since the lock is lost, and the network has made copies of the take and the commit. If both
// copies are done in order, and there was no other write since, they store what was refused: this is the
// exception in the comment of Save. One copy alone stores nothing, nor do both after another write.
func TestCopiesOfARefusedSave(t *testing.T) {
	for name, tt := range map[string]struct {
		take, commit, written bool
		want                  string
	}{
		"of both":                        {take: true, commit: true, want: "refused"},
		"of both, when others have held": {take: true, commit: true, written: true, want: "theirs"},
		"of the take":                    {take: true, want: "0"},
		"of the commit":                  {commit: true, want: "0"},
	} {
		t.Run(name, fakeTime(func(t *testing.T, s *redistest.Server) {
			learn(t, s)
			st, p := tapped(t, s, patient)
			other := process(t, s)
			create(t, other, "0")
			h := take(t, st)
			s.Do(t, "DEL", theLock) // it was evicted
			err := h.Save(t.Context(), []byte("refused"))
			if wantError(t, "Save", err, ErrLost); errors.Is(err, ErrUnavailable) {
				t.Errorf("Save: %v: the refusal is certain, so it must not be ErrUnavailable", err)
			}
			wantData(t, s, "0")
			if tt.written {
				save(t, take(t, other), "theirs")
			}
			lapse(3 * patient.Lease) // until then, sweeps release the lock if the take's token has it
			for _, cmd := range p.Commands() {
				if tt.take && takesLock(cmd) || tt.commit && runs(cmd, commitScript) {
					again(t, s, cmd)
				}
			}
			wantData(t, s, tt.want)
		}))
	}
}

// Redis has done the commit, but a proxy replies with an error of its own. The error of Save says that the write
// may be stored.
func TestAProxysErrorDoesNotSayThatNothingWasStored(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		create(t, process(t, s), "0")
		p := &mistaken{Client: transport.NewRedigo(s.Pool(t, 2), patient.Timeout)}
		h := take(t, New(p, patient))
		p.now = true
		wantError(t, "Save", h.Save(t.Context(), []byte("1")), ErrUnavailable)
		wantData(t, s, "1")
	})
}

// mistaken is a client behind such a proxy.
type mistaken struct {
	transport.Client
	now bool
}

func (m *mistaken) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	replies, err := m.Client.Do(ctx, key, commands...)
	if m.now {
		for i := range replies {
			replies[i] = redis.Error("upstream failure")
		}
	}
	return replies, err
}

// The connection breaks while the SET of a take is under way. Another holder has the lock, so the caller waits,
// and gives up. A SET that is done after that leaves no lock.
func TestLateSetOfATakeThatGaveUpLeavesNoLock(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, p := tapped(t, s, patient)
		other := process(t, s)
		create(t, other, "0")
		holder := take(t, other)
		onceFor(t, p, takesLock, redistest.DropCommand)
		_, _, err := st.Take(t.Context(), theID, Terms{LockWait: 50 * time.Millisecond})
		wantError(t, "Take", err, ErrTimeout)
		save(t, holder, "1")
		wantFree(t, s)
		for _, cmd := range p.Commands() {
			if takesLock(cmd) {
				again(t, s, cmd)
			}
		}
		next := takeBy(t, other, Terms{LockWait: patient.Lease / 10})
		save(t, next, "2")
	})
}

// notified is a client whose messages bypass the proxy, which does not know messages.
type notified struct {
	transport.Client
	past *transport.Redigo
}

func (n notified) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	return n.past.Subscribe(ctx, channel)
}

// The network has made a copy of a take that waits for a session. The copy arrives after the take has returned.
// It may join the queue again, but no process waits for that place, since no caller is behind it.
func TestACopyOfATakeKeepsNobodyWaiting(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		p := redistest.NewProxy(t, s)
		st := New(notified{
			transport.NewRedigo(p.Pool(t, 2), patient.Timeout), transport.NewRedigo(s.Pool(t, 1), patient.Timeout)}, patient)
		other := process(t, s)
		for _, id := range []string{theID, newID} {
			must(t, other.Create(t.Context(), id, []byte("0"), Terms{}))
		}
		another, holder := takeID(t, other, newID), take(t, other)
		waiting := begin(func() error { // for another session, so that its process listens
			h, _, err := st.Take(t.Context(), newID, Terms{LockWait: time.Minute})
			if err == nil {
				h.Release(t.Context())
			}
			return err
		})
		lapse(time.Second)
		p.Forget()
		_, _, err := st.Take(t.Context(), theID, Terms{LockWait: 50 * time.Millisecond})
		wantError(t, "Take", err, ErrTimeout)
		lapse(time.Second)
		for _, cmd := range p.Commands() {
			if runs(cmd, takeScript) && strings.Contains(strings.Join(cmd.Args, " "), theLock) {
				again(t, s, cmd)
			}
		}
		if !s.Exists(t, theQueue) {
			t.Fatal("no copy has joined the queue")
		}
		for n := range 3 {
			begun := time.Now()
			save(t, holder, "1")
			holder = take(t, other)
			if time.Since(begun) > 100*time.Millisecond {
				t.Errorf("take %d after the copy waited for %v", n+1, time.Since(begun))
			}
		}
		save(t, holder, "1")
		another.Release(t.Context())
		wantError(t, "the other Take", waiting.wait(), nil)
	})
}

// A take that reaches Redis after its caller has given up leaves no lock either.
func TestTakeWithoutReply(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, p := tapped(t, s, patient)
		create(t, process(t, s), "first")
		release := onceFor(t, p, takesLock, redistest.HangCommand)
		begun := time.Now()
		_, _, err := st.Take(t.Context(), theID, Terms{})
		wantError(t, "Take", err, ErrUnavailable)
		if took := time.Since(begun); took != patient.Timeout {
			t.Errorf("Take returned after %v, want the Timeout, %v", took, patient.Timeout)
		}
		release()
		redistest.Eventually(t, "the lock is free", func() bool { return !s.Exists(t, theLock) })
		save(t, take(t, process(t, s)), "next")
	})
}

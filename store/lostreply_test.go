package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A life is all that can happen to a session, as one process does it. more is what its records
// have in them besides.
func life(t *testing.T, s *site, st *Store, more string) error {
	ctx := t.Context()
	var h *Hold
	taken := func(id, want string) error {
		var err error
		if h, err = st.Take(ctx, id, Terms{}); err != nil {
			return err
		}
		if got := string(h.Record.Data); got != want+more {
			h.Release(ctx)
			return fmt.Errorf("took %q, want %q", got, want)
		}
		return nil
	}
	for i, step := range []func() error{
		func() error { return st.Create(ctx, theID, []byte("1"+more), Terms{}) },
		func() error { return taken(theID, "1") },
		func() error { return h.Save(ctx, []byte("2"+more)) },
		func() error { return taken(theID, "2") },
		func() error { return h.Touch(ctx) },
		func() error { _, err := st.Load(ctx, theID, Terms{}); return err },
		func() error { return taken(theID, "2") },
		func() error { return h.Renew(ctx, newID, []byte("3"+more)) },
		func() error { return taken(newID, "3") },
		func() error { h.Release(ctx); return nil },
		func() error { return taken(newID, "3") },
		func() error { return h.Destroy(ctx) },
		func() error { _, err := st.Load(ctx, newID, Terms{}); return mustBe(err, ErrGone) },
		func() error { _, err := st.Take(ctx, theID, Terms{}); return mustBe(err, ErrGone) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	if got, want := s.Keys(t), []string{newRecord, theRecord}; !slices.Equal(got, want) {
		return fmt.Errorf("in the end there are keys %q, want %q", got, want)
	}
	return nil
}

// A connection that breaks leaves open whether Redis did the work, so the script
// is run again, or in place of the plain commands. Whichever command of a session's life it is, and whether or not
// Redis did the work, nobody notices.
func TestAnyConnectionMayBreak(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"small": "", "large": large("")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachFence(t, func(t *testing.T, s *site) { anyConnectionMayBreak(t, s, more) })
		})
	}
}

func anyConnectionMayBreak(t *testing.T, s *site, more string) {
	p := redistest.NewProxy(t, s.Server)
	st := s.open(p.Pool(t, 2), s.locks.Pool(t, 2), patient)
	for range 2 { // the first time, Redis has to learn the scripts
		p.Forget()
		s.Do(t, "DEL", theRecord, newRecord)
		if err := life(t, s, st, more); err != nil {
			t.Fatal(err)
		}
	}
	commands, most := p.Requests(), exchanges(p)+1
	for name, fault := range map[string]redistest.Fault{
		"the reply is lost":   redistest.DropReply,
		"the reply is cut":    redistest.CutReply,
		"the command is lost": redistest.DropCommand,
	} {
		for n := range commands {
			s.Do(t, "DEL", theRecord, newRecord)
			p.Forget()
			p.Inject(func(redistest.Command) redistest.Fault {
				if p.Requests() == n {
					return fault
				}
				return redistest.Pass
			})
			if err := life(t, s, st, more); err != nil {
				t.Errorf("command %d of %d, %s: %v", n, commands, name, err)
				s.Do(t, "FLUSHDB")
				s.locks.Do(t, "DEL", theLock)
			}
			if got := exchanges(p); got > most {
				t.Errorf("command %d, %s: %d exchanges, want at most one repetition: %d", n, name, got, most)
			}
		}
	}
}

// exchanges counts those that a client has begun, but for sweeps of locks in the background.
func exchanges(p *redistest.Proxy) (n int) {
	for _, cmd := range p.Commands() {
		if takesLock.is(cmd) || strings.HasPrefix(cmd.Name, "EVAL") && cmd.Args[1] != "2" {
			n++
		}
	}
	return n
}

// Every first reply to a commit is lost, and yet each is stored exactly once.
func TestRepeatedCommitIsStoredOnce(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		learn(t, s.Server)
		p := redistest.NewProxy(t, s.Server)
		st := s.open(p.Pool(t, 2), s.locks.Pool(t, 2), patient)
		create(t, st, "0")
		odd := false
		p.Inject(func(cmd redistest.Command) redistest.Fault {
			if runs(cmd, commitScript) || runs(cmd, replaceScript) {
				if odd = !odd; odd {
					return redistest.DropReply
				}
			}
			return redistest.Pass
		})
		const rounds = 10
		for range rounds {
			increment(t, st)
		}
		wantData(t, s, fmt.Sprint(rounds))
	})
}

// When the repetition comes, another may have built on what was stored. Then it
// is not known any more that it was, and the answer is that of a lost lock. The
// other's record is untouched.
func TestRepeatedCommitAfterAnotherWrote(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		learn(t, s.Server)
		p := redistest.NewProxy(t, s.Server)
		st, other := s.open(p.Pool(t, 2), s.locks.Pool(t, 2), patient), s.process(t)
		create(t, st, "0")
		h := take(t, st)
		commits := 0
		p.Inject(func(cmd redistest.Command) redistest.Fault {
			if !runs(cmd, commitScript) && !runs(cmd, replaceScript) {
				return redistest.Pass
			}
			if commits++; commits == 1 {
				return redistest.DropReply
			}
			s.locks.Do(t, "DEL", theLock) // free already, if beside the record
			increment(t, other)
			return redistest.Pass
		})
		wantError(t, "Save", h.Save(t.Context(), []byte("1")), ErrLost)
		wantData(t, s, "2")
	})
}

// A command that is late by more than its lease finds that its time is over.
func TestLateCommitChangesNothing(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		p := redistest.NewProxy(t, s.Server)
		o := patient
		o.Timeout = shortly
		st := s.open(p.Pool(t, 2), s.locks.Pool(t, 2), o)
		create(t, s.process(t), "first")
		h := take(t, st)
		release := once(t, s.Server, p, s.commit(), redistest.HangCommand)
		wantError(t, "Save", h.Save(t.Context(), []byte("late")), ErrUnavailable)
		s.locks.Do(t, "DEL", theLock) // its lease ends
		rightful := s.process(t)
		save(t, take(t, rightful), "rightful")
		next := take(t, rightful)
		release()
		save(t, next, "next")
		wantData(t, s, "next")
	})
}

// A take that is late by more than the patience of its caller leaves no lock.
func TestLateTakeLeavesNoLock(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		p := redistest.NewProxy(t, s.Server)
		o := patient
		o.Timeout = shortly
		st := s.open(p.Pool(t, 2), nil, o)
		create(t, s.process(t), "first")
		release := onceFor(t, p, takesLock, redistest.HangCommand)
		_, err := st.Take(t.Context(), theID, Terms{})
		wantError(t, "Take", err, ErrUnavailable)
		release()
		eventually(t, "the lock is free", func() bool { return !s.Exists(t, theLock) })
		save(t, take(t, s.process(t)), "next")
	})
}

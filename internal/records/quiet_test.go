package records

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// quiet takes the session as a job does.
func quiet(t *testing.T, st *Engine, terms Terms) *Hold {
	t.Helper()
	terms.Quiet = true
	return takeBy(t, st, terms)
}

// P12: a job does not extend the idle timeout of a session, however the job ends. If the session would expire
// sooner than the lock, it is made to outlast the lock, and no more. When the lock is released, the session
// expires when it would have.
func TestAQuietHoldDoesNotProlongTheSession(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for _, left := range []time.Duration{5 * time.Minute, 5 * time.Second} { // the latter needs the script
			for name, end := range uses {
				s.Do(t, "FLUSHALL")
				create(t, st, "0")
				s.Do(t, "PEXPIRE", theRecord, left.Milliseconds())
				h := quiet(t, st, Terms{})
				wantExpiry(t, s, theRecord, max(left, patient.Lease+outlast))
				wantError(t, name, end(t.Context(), h), nil)
				wantExpiry(t, s, theRecord, left)
				save(t, take(t, st), "2") // a visitor comes
				wantExpiry(t, s, theRecord, DefaultTTL)
			}
		}
	})
}

// P12: jobs one after another do not keep a session alive that its visitor has left.
func TestAJobEachMomentDoesNotKeepTheSession(t *testing.T) {
	for use, end := range uses {
		t.Run(use, fakeTime(func(t *testing.T, s *redistest.Server) {
			st, terms := process(t, s), Terms{TTL: 5 * time.Minute}
			create(t, st, "0")
			save(t, takeBy(t, st, terms), "1") // the visitor
			left := time.Now()
			for time.Since(left) < terms.TTL-time.Second {
				wantError(t, use, end(t.Context(), quiet(t, st, terms)), nil)
				lapse(3 * time.Second)
			}
			lapse(time.Second)
			wantNotFound(t, s, st, terms)
		}))
	}
}

// P12: a visitor who comes while a job has the lock extends the idle timeout, however short the session's
// timeouts are.
func TestAJobLeavesTheTimeOfAVisitorWhoComesMeanwhile(t *testing.T) {
	little := patient.Lease + outlast + 2*time.Second // longer than the lock may last
	for name, terms := range map[string]Terms{
		"long": {}, "short": {TTL: 10 * time.Second}, "little": {TTL: little},
		"short Lifetime": {TTL: 10 * time.Second, Lifetime: 20 * time.Second}, "little Lifetime": {TTL: time.Minute, Lifetime: little},
	} {
		terms = terms.withDefaults()
		for what, comes := range map[string]func(*testing.T, *Engine, *guest){
			"reads": func(t *testing.T, st *Engine, _ *guest) { _, err := st.Load(t.Context(), theID, terms); must(t, err) },
			"waits": func(t *testing.T, _ *Engine, visitor *guest) { save(t, visitor.holds(t, "1"), "2") },
		} {
			t.Run(name+", "+what, fakeTime(func(t *testing.T, s *redistest.Server) {
				st := process(t, s)
				must(t, st.Create(t.Context(), theID, []byte("0"), terms))
				s.Do(t, "PEXPIRE", theRecord, 5000)
				job := quiet(t, st, terms)
				lapse(3 * time.Second)
				if what == "waits" {
					visitor, next := guests(t, st, 1, terms)[0], guests(t, st, 1, Terms{TTL: terms.TTL, Lifetime: terms.Lifetime, Quiet: true})[0]
					saved := saving(t, job, "1")
					comes(t, st, visitor)
					wantError(t, "Save", saved.wait(), nil)
					job = next.holds(t, "2")
				} else {
					comes(t, st, nil)
				}
				want := terms.remains(&Record{Created: time.Now().Add(-3 * time.Second)}, time.Now()) - 3*time.Second
				lapse(3 * time.Second)
				save(t, job, "3")
				if left := s.Do(t, "PTTL", theRecord).(int64); left < want.Milliseconds()-1 {
					t.Errorf("%d ms are left 3 s after the visitor came, want %v", left, want)
				}
			}))
		}
	}
}

// P12: a visitor who waits behind a job of the same process finds the session, even if the idle timeout passes
// meanwhile and Redis is far away.
func TestAVisitorWhoWaitsBehindAJobFindsTheSession(t *testing.T) {
	for use, end := range uses {
		t.Run(use, fakeTime(func(t *testing.T, s *redistest.Server) {
			learn(t, s)
			st, proxy := tapped(t, s, patient)
			create(t, st, "0")
			s.Do(t, "PEXPIRE", theRecord, 1000)
			job := quiet(t, st, Terms{})
			visitor := guests(t, st, 1, Terms{})[0]
			lapse(2 * time.Second) // longer than a process keeps its turn, so that the job's commit releases the lock
			proxy.Inject(func(c redistest.Command) redistest.Fault {
				if c.Name == "SET" { // the visitor's take
					return redistest.HangCommand
				}
				return redistest.Pass
			})
			wantError(t, use, end(t.Context(), job), nil)
			synctest.Wait()
			lapse(time.Second)
			wantExpiry(t, s, theRecord, outlast-time.Second)
			proxy.Inject(nil)
			proxy.Release()
			<-visitor.came
			must(t, visitor.err)
			visitor.hold.Release(t.Context())
			wantExpiry(t, s, theRecord, DefaultTTL)
		}))
	}
}

// P12: a visitor's request that follows a job of its process extends the idle timeout, even if the request fails.
func TestAVisitorWhoFailsBehindAJobExtendsTheSession(t *testing.T) {
	for use, end := range uses {
		t.Run(use, fakeTime(func(t *testing.T, s *redistest.Server) {
			st := process(t, s)
			create(t, st, "0")
			s.Do(t, "PEXPIRE", theRecord, 2000)
			job := quiet(t, st, Terms{})
			visitor := guests(t, st, 1, Terms{})[0]
			ended := begin(func() error { return end(t.Context(), job) })
			<-visitor.came
			must(t, visitor.err)
			wantError(t, use, ended.wait(), nil)
			lapse(3 * time.Second)
			visitor.hold.Release(t.Context())
			wantExpiry(t, s, theRecord, DefaultTTL)
		}))
	}
}

// P12: a visitor's request that fails extends the idle timeout even if a job follows before Redis has learned of
// the visitor.
func TestAVisitorWhoFailsBeforeAJobExtendsTheSession(t *testing.T) {
	for behind, comes := range map[string]func(*testing.T, *Engine) (visitor *Hold, job *guest){
		"nobody": func(t *testing.T, st *Engine) (*Hold, *guest) {
			visitor := take(t, st)
			return visitor, guests(t, st, 1, Terms{Quiet: true})[0]
		},
		"another job": func(t *testing.T, st *Engine) (*Hold, *guest) {
			first := quiet(t, st, Terms{})
			visitor, job := guests(t, st, 1, Terms{})[0], guests(t, st, 1, Terms{Quiet: true})[0]
			must(t, first.Touch(t.Context()))
			<-visitor.came
			must(t, visitor.err)
			return visitor.hold, job
		},
	} {
		for use, end := range uses {
			t.Run("behind "+behind+", "+use, fakeTime(func(t *testing.T, s *redistest.Server) {
				st := process(t, s)
				create(t, st, "0")
				s.Do(t, "PEXPIRE", theRecord, 2000)
				visitor, job := comes(t, st)
				visitor.Release(t.Context())
				<-job.came
				must(t, job.err)
				lapse(time.Second) // the job works; the visitor has left
				wantError(t, use, end(t.Context(), job.hold), nil)
				wantExpiry(t, s, theRecord, DefaultTTL-time.Second)
			}))
		}
	}
}

// P12: jobs of two processes that overlap again and again do not keep a session alive that its visitor has left.
func TestJobsThatMeetDoNotKeepTheSession(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		here, there := process(t, s), process(t, s)
		terms := Terms{TTL: 5 * time.Minute}
		create(t, here, "0")
		save(t, takeBy(t, here, terms), "1") // the visitor
		left := time.Now()
		for time.Since(left) < terms.TTL+5*time.Second {
			job, _, err := here.Take(t.Context(), theID, Terms{TTL: terms.TTL, Quiet: true})
			if err != nil {
				break
			}
			lapse(20 * time.Millisecond)
			other := guests(t, there, 1, Terms{TTL: terms.TTL, Quiet: true})[0]
			lapse(50 * time.Millisecond)
			must(t, job.Touch(t.Context()))
			must(t, other.holds(t, "1").Touch(t.Context()))
			lapse(4 * time.Second)
		}
		wantNotFound(t, s, here, terms)
	})
}

// A visitor's request and a job follow one another, in either order, and one round trip may commit both. The
// session gets the visitor's timeout. A job that is released does not extend the session.
func TestAJobDoesNotTakeTheVisitorsTime(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		for _, jobFirst := range []bool{false, true} {
			first := take(t, d.st)
			if jobFirst {
				first.Release(t.Context())
				first = quiet(t, d.st, Terms{})
			}
			second := guests(t, d.st, 1, Terms{Quiet: !jobFirst})[0]
			d.Do(t, "PEXPIRE", theRecord, (5 * time.Minute).Milliseconds())
			saved := saving(t, first, "1")
			save(t, second.holds(t, "1"), "2")
			wantError(t, "Save", saved.wait(), nil)
			wantExpiry(t, d.Server, theRecord, DefaultTTL)
		}
		first := take(t, d.st)
		job := guests(t, d.st, 1, Terms{Quiet: true})[0]
		save(t, first, "1")
		held := job.holds(t, "1")
		const left = 5 * time.Minute // since the visitor has gone
		d.Do(t, "PEXPIRE", theRecord, left.Milliseconds())
		held.Release(t.Context())
		wantExpiry(t, d.Server, theRecord, left)
	})
}

// P12: a busy Redis may run two commands of a script at different times. That does not make a job count as a
// visitor.
func TestAJobOnABusyRedisDoesNotProlongTheSession(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "0")
		s.Do(t, "PEXPIRE", theRecord, 5000) // so that the take needs the script
		job := quiet(t, st, Terms{})
		s.Do(t, "PEXPIRE", theLock, (patient.Lease - 100*time.Millisecond).Milliseconds()) // as if the lock had been extended first
		job.Release(t.Context())
		wantExpiry(t, s, theRecord, 5*time.Second)
	})
}

// Peek changes nothing, whether the session is held, free or ended.
func TestPeek(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		peek := func(what string, want error) {
			t.Helper()
			before := stored(t, s)
			_, _, err := st.Peek(t.Context(), theID, Terms{})
			wantError(t, "Peek at "+what, err, want)
			if after := stored(t, s); after != before {
				t.Errorf("%s was %s, and is %s", what, before, after)
			}
		}
		peek("nothing", ErrNotFound)
		create(t, st, "0")
		h := take(t, st)
		peek("one that is held", nil)
		must(t, h.Destroy(t.Context()))
		peek("an ended one", ErrGone)
		s.Do(t, "SET", theRecord, "garbage")
		peek("garbage", ErrCorrupt)
	})
}

// Peek does not extend the session. It returns when the session ends, even if Redis does not know that: at its
// idle timeout, or at the end of its lifetime if that comes first.
func TestPeekKnowsOwnTimes(t *testing.T) {
	t.Parallel()
	terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		for name, tt := range ownTimes {
			r := recordOf(tt.idle, tt.until, tt.age)
			most := terms.left(&r, time.Now())
			for has, want := range map[time.Duration]time.Duration{0: tt.want, time.Minute: time.Minute, 1000 * time.Hour: most} {
				s.Do(t, "SET", theRecord, r.text(nil))
				if has > 0 {
					s.Do(t, "PEXPIRE", theRecord, has.Milliseconds())
				}
				got, expires, err := process(t, s).Peek(t.Context(), theID, terms)
				if left := time.Until(expires); err != nil || string(got.Data) != "1" || (left-want).Abs() > time.Millisecond {
					t.Errorf("%s, which Redis keeps for %v: %+v ends in %v, %v, want %v", name, has, got, left, err, want)
				}
				if has > 0 {
					wantExpiry(t, s, theRecord, has)
				}
			}
		}
	})
}

// P12: a job does not extend a session with timeouts of its own either, such as a guest's or a remembered one.
func TestAQuietHoldKeepsToTheSessionsOwnTimes(t *testing.T) {
	t.Parallel()
	terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, tt := range ownTimes {
			for use, end := range uses {
				for _, left := range []time.Duration{time.Minute, 5 * time.Second} { // the latter needs the script
					r := recordOf(tt.idle, tt.until, tt.age)
					s.Do(t, "SET", theRecord, r.text(nil), "PX", left.Milliseconds())
					h := quiet(t, process(t, s), terms)
					wantExpiry(t, s, theRecord, max(left, patient.Lease+outlast))
					wantError(t, use, end(t.Context(), h), nil)
					wantExpiry(t, s, theRecord, left)
				}
			}
		}
	})
}

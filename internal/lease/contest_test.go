package lease

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A result is the outcome of a Lock, and how long the call took.
type result struct {
	lease *Lease
	err   error
	took  time.Duration
}

// wait begins to wait for the lock of k.
func wait(ctx context.Context, g *Locks, a Algorithm, o Options) <-chan result {
	got, begin := make(chan result, 1), time.Now()
	go func() {
		l, err := g.Lock(ctx, "k", a, o)
		got <- result{l, err, time.Since(begin)}
	}()
	return got
}

// A wait ends after Options.Wait, whether another process has the lock, or first a caller of this process and
// then another process.
func TestAcquireWaitIsBounded(t *testing.T) {
	type situation struct{ here, elsewhere time.Duration }
	each(t, map[string]situation{
		"held by another process": {0, time.Hour},
		"by both, in turn":        {2 * s, time.Hour},
	}, func(t *testing.T, tt situation) {
		var g Locks
		var f fake
		if tt.here > 0 {
			l := lock(t, &g, &f, Options{Lease: time.Hour})
			time.AfterFunc(tt.here, func() {
				f.Put("k", "another", tt.elsewhere)
				_ = l.Unlock(t.Context())
			})
		} else {
			f.Put("k", "another", tt.elsewhere)
		}
		r := <-wait(t.Context(), &g, &f, Options{Wait: 3 * s})
		if !errors.Is(r.err, ErrTimeout) || r.took != 3*s || !strings.Contains(r.err.Error(), "waited 3s for k: ") {
			t.Errorf("after %v: %v", r.took, r.err)
		}
		if tt.here <= 3*s {
			wantIdle(t, &g)
		}
		if tt.here == 0 {
			f.wantCalls(t, "Release", 0) // nothing needs cleaning up
		}
	})
}

// The caller in front is asking a Redis that hangs, so nobody knows whether the lock is held. The caller behind
// it is not told that another has the lock.
func TestTimeoutBehindACallerThatAsks(t *testing.T) {
	each(t, map[string]string{"with a label": "POST /order", "without": ""}, func(t *testing.T, label string) {
		f := fake{hooks{take: func(call) error { pause(time.Minute); return errNoReply }}}
		var g Locks
		first := wait(t.Context(), &g, &f, Options{Label: label, Timeout: time.Minute})
		synctest.Wait()
		r := <-wait(t.Context(), &g, &f, Options{Wait: s, Timeout: time.Minute})
		text := "locker: waited 1s for k: another caller of this process is asking for the lock"
		if label != "" {
			text += ": " + label
		}
		if !errors.Is(r.err, ErrTimeout) || r.err.Error() != text {
			t.Errorf("%v, want %q", r.err, text)
		}
		<-first
		redistest.Elapse(time.Hour)
	})
}

// The time that Redis takes to reply counts as waiting, too. A try that was begun in time is finished, since
// otherwise nobody would know what it did.
func TestAcquireWaitIncludesTries(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := fake{hooks{take: func(call) error { pause(2 * s); return nil }}}
		r := <-wait(t.Context(), new(Locks), &f, Options{Wait: 3 * s})
		if !errors.Is(r.err, ErrTimeout) || r.took.Truncate(s) != 4*s {
			t.Errorf("after about %v: %v", r.took, r.err)
		}
	})
}

// A try that begins late has until the end of the wait, and an eighth of Timeout more. If it gets no reply by
// then, the callers behind it still wait. But the first try always has all of Timeout.
func TestALateTryEndsWithTheWait(t *testing.T) {
	const timeout = 2 * s
	type situation struct {
		wait, silent time.Duration // how long the caller waits; after how long Redis falls silent
		takes        time.Duration
		late         bool
	}
	each(t, map[string]situation{
		"late":         {10 * s, 9 * s, 10*s + timeout/8, true},
		"at the end":   {10 * s, 10*s - 1, 10*s + timeout/8, true},
		"in good time": {10 * s, 8 * s, 10 * s, false},
		"the first":    {s, 0, timeout, false},
	}, func(t *testing.T, tt situation) {
		var g Locks
		begun := time.Now()
		f := fake{hooks{take: func(c call) error {
			if left := tt.silent - time.Since(begun); left > 0 {
				pause(min(left, timeout))
				return c.do()
			}
			select {
			case <-c.ctx.Done():
			case <-time.After(timeout):
			}
			return errSilent
		}}}
		f.Put("k", "another", time.Hour)
		first := wait(t.Context(), &g, &f, Options{Wait: tt.wait, Timeout: timeout, Backoff: Backoff{Min: 1, Max: 1}})
		synctest.Wait()
		behind := wait(t.Context(), &g, &f, Options{Wait: time.Hour, Timeout: timeout})
		if r := <-first; r.took.Round(time.Millisecond) != tt.takes || !errors.Is(r.err, ErrUnavailable) || errors.Is(r.err, ErrTimeout) != tt.late {
			t.Errorf("after %v: %v", r.took, r.err)
		}
		select {
		case r := <-behind:
			if tt.late {
				t.Errorf("the caller behind stopped waiting: %v", r.err)
			}
		case <-time.After(timeout / 2):
			if !tt.late {
				t.Error("the caller behind still waits")
			}
		}
		g.Close(errClosed)
		if tt.late {
			<-behind
		}
	})
}

// A caller waits for as long as it wants to, however long the callers before it wait.
func TestEachWaitEndsInTime(t *testing.T) {
	var f fake
	withLease(t, &f, Options{Lease: time.Hour}, func(t *testing.T, g *Locks, l *Lease) {
		var all []<-chan result
		waits := []time.Duration{10 * s, 20 * s, 5 * s, 20 * s, 30 * s}
		for _, d := range waits {
			all = append(all, wait(t.Context(), g, &f, Options{Wait: d}))
			redistest.Elapse(s)
		}
		for i, got := range all {
			if r := <-got; r.took != waits[i] || !errors.Is(r.err, ErrTimeout) {
				t.Errorf("number %d waited %v: %v", i, r.took, r.err)
			}
		}
		mustUnlock(t, l)
	})
}

// A caller whose context ends gets the reason at once, and leaves nothing behind: no place in line, no token, no
// pending try. If the context had ended before, Redis is not asked.
func TestAcquireContextEnds(t *testing.T) {
	gone := errors.New("the client has gone")
	type situation struct {
		cancelled bool // otherwise it is out of time
		after     time.Duration
		here      bool // the caller waits in line; otherwise it waits for another process
	}
	each(t, map[string]situation{
		"cancelled in line":         {true, s, true},
		"cancelled between tries":   {true, s, false},
		"cancelled before":          {true, 0, false},
		"out of time in line":       {false, s, true},
		"out of time between tries": {false, s, false},
		"out of time before":        {false, 0, false},
	}, func(t *testing.T, tt situation) {
		var g Locks
		var f fake
		free := func() { f.Put("k", "another", 0) }
		if tt.here {
			l := lock(t, &g, &f, Options{})
			free = func() { mustUnlock(t, l) }
		} else {
			f.Put("k", "another", time.Hour)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		want := gone
		if tt.cancelled {
			time.AfterFunc(tt.after, func() { cancel(gone) })
			synctest.Wait()
		} else {
			var stop func()
			ctx, stop = context.WithTimeout(ctx, tt.after)
			defer stop()
			want = context.DeadlineExceeded
		}
		r := <-wait(ctx, &g, &f, Options{})
		if !errors.Is(r.err, want) || errors.Is(r.err, ErrUnavailable) || r.took != tt.after {
			t.Errorf("after %v: %v, want %v at once, and no complaint about Redis", r.took, r.err, want)
		}
		free()
		wantIdle(t, &g)
		tries := len(f.Made("Take"))
		if tt.after == 0 && tries > 0 {
			t.Errorf("Redis was asked %d times", tries)
		}
		redistest.Elapse(time.Hour)
		f.wantHolder(t, "")
		f.wantCalls(t, "Take", tries)
	})
}

// A crowd in one process costs Redis one contender. Its callers are served in the order in which they came, each
// with a token of its own. Callers of another key do not wait for them.
func TestCallersAreServedInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const crowd = 50
		var g Locks
		var f fake
		begin := time.Now()
		for i := range crowd {
			go func() {
				l := lock(t, &g, &f, Options{Wait: time.Hour})
				if got, want := time.Since(begin), time.Duration(i)*s; got != want {
					t.Errorf("caller %d got the lock after %v, want %v", i, got, want)
				}
				pause(s)
				mustUnlock(t, l)
			}()
			synctest.Wait()
		}
		other, err := g.Lock(t.Context(), "another key", &f, Options{})
		if err != nil || time.Since(begin) > 0 {
			t.Fatalf("%v, after %v", err, time.Since(begin))
		}
		mustUnlock(t, other)
		redistest.Elapse(time.Hour)
		f.wantCalls(t, "Take", crowd+1)
		tokens := map[string]bool{}
		for _, c := range f.Made("Take") {
			tokens[c.Token] = true
		}
		if len(tokens) != crowd+1 {
			t.Errorf("%d tokens for %d leases", len(tokens), crowd+1)
		}
		wantIdle(t, &g)
	})
}

// At most MaxWaiters callers wait for a key. The next caller is refused at once. A caller that gives up makes
// room at once, and the others keep their order.
func TestCallersAreFull(t *testing.T) {
	each(t, map[string]int{"as many as by default": 0, "three": 3}, func(t *testing.T, most int) {
		var f fake
		o := Options{MaxWaiters: most}
		g, l := newLease(t, &f, o)
		ctx, cancel := context.WithCancel(t.Context())
		waiting := []<-chan result{wait(ctx, g, &f, o)}
		synctest.Wait()
		for range o.WithDefaults().MaxWaiters - 1 {
			waiting = append(waiting, wait(t.Context(), g, &f, o))
			synctest.Wait()
		}
		r := <-wait(t.Context(), g, &f, o)
		if !errors.Is(r.err, ErrTooManyWaiters) || r.took != 0 || !strings.Contains(r.err.Error(), "k: too many") {
			t.Errorf("the caller beyond MaxWaiters: after %v: %v", r.took, r.err)
		}
		cancel()
		wantError(t, (<-waiting[0]).err, context.Canceled)
		waiting = append(waiting[1:], wait(t.Context(), g, &f, o))
		synctest.Wait()
		for _, got := range waiting {
			mustUnlock(t, l)
			if l = (<-got).lease; l == nil {
				t.Fatal("a caller that waits is not served")
			}
		}
		mustUnlock(t, l)
	})
}

// The turn comes to a caller that is giving up at that moment. The turn is not lost: it goes on to the next
// caller, if there is one.
func TestTheTurnComesToWhoIsGivingUp(t *testing.T) {
	t.Parallel()
	for i := range 200 { // chance decides which of the two the caller sees first
		synctest.Test(t, func(t *testing.T) {
			var g Locks
			var f fake
			l := lock(t, &g, &f, Options{})
			ctx, cancel := context.WithCancel(t.Context())
			going := wait(ctx, &g, &f, Options{})
			synctest.Wait()
			var next <-chan result
			if i%2 == 0 {
				next = wait(t.Context(), &g, &f, Options{})
				synctest.Wait()
			}
			go cancel()
			mustUnlock(t, l)
			if r := <-going; r.err == nil {
				mustUnlock(t, r.lease)
			} else if !errors.Is(r.err, context.Canceled) {
				t.Error(r.err)
			}
			if next != nil {
				mustUnlock(t, (<-next).lease)
			}
			synctest.Wait()
			f.wantHolder(t, "")
			wantIdle(t, &g)
		})
	}
}

// If nobody can be served, the waiting callers are refused with the reason. The holder keeps the lock, and later
// callers wait as usual.
func TestCallersAreDismissed(t *testing.T) {
	var f fake
	withLease(t, &f, Options{}, func(t *testing.T, g *Locks, l *Lease) {
		away := errors.New("away")
		waiting := []<-chan result{wait(t.Context(), g, &f, Options{}), wait(t.Context(), g, &f, Options{})}
		synctest.Wait()
		g.Dismiss("k", away)
		for _, got := range waiting {
			if r := <-got; !errors.Is(r.err, away) || r.took > 0 {
				t.Errorf("after %v: %v", r.took, r.err)
			}
		}
		later := wait(t.Context(), g, &f, Options{})
		synctest.Wait()
		mustUnlock(t, l)
		mustUnlock(t, (<-later).lease)
	})
}

// Redis is silent until the caller's own deadline. That is no verdict on Redis, so the next caller is not
// refused.
func TestADeadlineIsNoVerdictOnRedis(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Locks
		f := fake{hooks{take: first(func(c call) error { <-c.ctx.Done(); return errSilent })}}
		ctx, cancel := context.WithTimeout(t.Context(), s)
		defer cancel()
		hurried := wait(ctx, &g, &f, Options{})
		synctest.Wait()
		next := wait(t.Context(), &g, &f, Options{})
		wantError(t, (<-hurried).err, context.DeadlineExceeded)
		mustUnlock(t, (<-next).lease)
	})
}

// A caller's context ends because something else was silent, as in an errgroup. The next caller is not refused.
func TestTheCauseOfACallersEndIsNoVerdictOnRedis(t *testing.T) {
	var f fake
	withLease(t, &f, Options{}, func(t *testing.T, _ *Locks, l *Lease) {
		var g Locks // of another process
		ctx, cancel := context.WithCancelCause(t.Context())
		goes := wait(ctx, &g, &f, Options{})
		synctest.Wait()
		next := wait(t.Context(), &g, &f, Options{})
		synctest.Wait()
		why := fmt.Errorf("another Redis: %w", errSilent)
		cancel(why)
		wantError(t, (<-goes).err, why)
		mustUnlock(t, l)
		mustUnlock(t, (<-next).lease)
	})
}

// An error that does not come from Redis ends the wait unchanged. If the caller has also gone, the error contains
// both reasons.
func TestAcquirePassesErrorsOn(t *testing.T) {
	no, gone := errors.New("no such record"), errors.New("the client has gone")
	each(t, map[string]error{"of another kind": no, "a refusal": errRefused}, func(t *testing.T, why error) {
		var g Locks
		f := fake{hooks{take: fails(why)}}
		wantError(t, (<-wait(t.Context(), &g, &f, Options{})).err, why)
		ctx, cancel := context.WithCancelCause(t.Context())
		f.take = func(call) error { cancel(gone); return why }
		if r := <-wait(ctx, &g, &f, Options{}); !errors.Is(r.err, why) || !errors.Is(r.err, gone) {
			t.Error(r.err)
		}
		redistest.Elapse(time.Hour)
		if calls := f.Calls(); len(calls) != 2 { // a refusal is an answer: there is nothing to sweep
			t.Errorf("calls %+v, want only those that failed", calls)
		}
		wantIdle(t, &g)
	})
}

// Take succeeds, but the caller has gone meanwhile, or the reply took as long as the lease, so that another may
// have the lock already. The lock is released.
func TestTakenForNobodyIsGivenBack(t *testing.T) {
	gone := errors.New("the client has gone")
	each(t, map[string]error{"who asked has gone": gone, "a lease has passed": ErrUnavailable}, func(t *testing.T, want error) {
		var g Locks
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		f := fake{hooks{take: func(c call) error { cancel(gone); return c.do() }}}
		if want != gone {
			f.take = slowly(s)
		}
		wantError(t, (<-wait(ctx, &g, &f, Options{Lease: s})).err, want)
		f.wantHolder(t, "")
		wantIdle(t, &g)
		redistest.Elapse(time.Hour)
		if want == gone { // the reply had come, so one command is enough
			f.wantCalls(t, "Release", 1)
		}
	})
}

// An algorithm may panic, or end the goroutine like FailNow in a test. The next caller in line is still served,
// and the lock is released if it was taken.
func TestAlgorithmDoesNotReturn(t *testing.T) {
	each(t, map[string]func(){"panic": func() { panic("a bug") }, "Goexit": runtime.Goexit}, func(t *testing.T, leave func()) {
		var g Locks
		var f fake
		failing := func(method *func(call) error, f func()) {
			*method = func(c call) error { _ = c.do(); leave(); return nil }
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				f()
				t.Error("the call returned")
			}()
			<-done
			*method = nil
		}
		failing(&f.take, func() { g.Lock(t.Context(), "k", &f, Options{}) })
		wantIdle(t, &g)
		redistest.Elapse(time.Millisecond)
		f.wantHolder(t, "")
		redistest.Elapse(time.Minute) // for the sweeps
		l := lock(t, &g, &f, Options{})
		failing(&f.extend, func() { l.Extend(t.Context(), s) })
		if err := l.Extend(t.Context(), s); err != nil {
			t.Errorf("the next Extend: %v", err)
		}
		failing(&f.release, func() { l.Unlock(t.Context()) })
		wantIdle(t, &g)
	})
}

// The reply to a Take is lost, so nobody knows whether the Take was done, or when. In each case sweeps release
// the lock long before its lease ends. They run at intervals that double, from 20 ms on.
func TestSweepAfterLostReply(t *testing.T) {
	type situation struct {
		landings []time.Duration // when the command, and repetitions of it, take effect
		err      error
	}
	each(t, map[string]situation{
		"done":                        {[]time.Duration{0}, errNoReply},
		"done, says another client":   {[]time.Duration{0}, errOther},
		"lands a little later":        {[]time.Duration{time.Millisecond}, errNoReply},
		"lands later, another client": {[]time.Duration{s}, errOther},
		"lands half a lease later":    {[]time.Duration{time.Minute / 2}, errNoReply},
		"lands again and again":       {[]time.Duration{0, s / 10, s}, errNoReply},
	}, func(t *testing.T, tt situation) {
		var g Locks
		f := fake{hooks{take: lands(tt.err, tt.landings...)}}
		begin := time.Now()
		if r := <-wait(t.Context(), &g, &f, Options{Lease: time.Minute}); !errors.Is(r.err, ErrUnavailable) {
			t.Fatal(r.err)
		}
		wantIdle(t, &g)
		f.wantHolder(t, "")
		redistest.Elapse(max(20*time.Millisecond, 2*slices.Max(tt.landings)))
		f.wantHolder(t, "")
		redistest.Elapse(time.Hour)
		sweeps := f.Made("Release")
		if last := sweeps[len(sweeps)-1].At.Sub(begin); len(sweeps) > 15 || last < time.Minute || last > 2*time.Minute {
			t.Errorf("%d sweeps, the last after %v, want one to two leases", len(sweeps), last)
		}
		for _, c := range sweeps {
			if c.Token != f.Made("Take")[0].Token || c.D != 0 {
				t.Errorf("a sweep with another token, or a cool-down: %+v", c)
			}
		}
	})
}

// Redis is unavailable for a while, and the token is in it. The caller has already waited for Take, so the first
// sweep keeps it only a little longer.
func TestSweepOutlastsAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		back := time.Now().Add(5 * s)
		f := fake{hooks{take: lands(errNoReply, 0), release: func(c call) error {
			if time.Now().Before(back) {
				<-c.ctx.Done()
				return errNoReply
			}
			return c.do()
		}}}
		if r := <-wait(t.Context(), new(Locks), &f, Options{Timeout: 4 * s, Lease: time.Minute}); r.took != s {
			t.Errorf("Lock returned %v after the failure, want a quarter of Timeout", r.took)
		}
		redistest.Elapse(9 * s)
		f.wantHolder(t, "")
		redistest.Elapse(time.Hour)
	})
}

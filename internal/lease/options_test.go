package lease

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

func TestOptionsDefaults(t *testing.T) {
	t.Parallel()
	want := Options{
		Lease:      10 * s,
		Wait:       10 * s,
		MaxHold:    time.Minute,
		MaxWaiters: 128,
		Backoff:    Backoff{Min: time.Millisecond, Max: 16 * time.Millisecond},
		Timeout:    2 * s,
		Span:       10 * s,
	}
	if got := (Options{}).WithDefaults(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := want.WithDefaults(); !reflect.DeepEqual(got, want) {
		t.Errorf("options that were set have changed: %+v", got)
	}
	if got := (Options{Lease: time.Hour}).WithDefaults(); got.MaxHold != time.Hour {
		t.Errorf("MaxHold is %v for a lease of an hour", got.MaxHold)
	}
}

// almostOne is the largest random number below 1.
var almostOne = math.Nextafter(1, 0)

// A pause is at least half of what the Backoff says, which doubles up to Max.
func TestBackoffDoublesUpToMax(t *testing.T) {
	t.Parallel()
	for b, all := range map[Backoff][]time.Duration{
		{Min: 100, Max: 1200}: {100, 200, 400, 800, 1200, 1200},
		{Max: 1000}:           {0, 1000, 1000},
		{Min: 2000, Max: 100}: {100, 100}, // Options refuse it
	} {
		for try, want := range all {
			for random, part := range map[float64]time.Duration{0: want / 2, 0.5: want * 3 / 4, almostOne: want} {
				if got := b.delay(try, random); got > part || got < part-1 {
					t.Errorf("%+v, try %d, random %v: pause %v, want %v", b, try, random, got, part)
				}
			}
		}
	}
}

// Whatever the number of the try and the Backoff, a pause is neither negative nor longer than Max.
func TestBackoffStaysInBounds(t *testing.T) {
	t.Parallel()
	for _, b := range []Backoff{
		{},
		{Min: 1, Max: math.MaxInt64},
		{Min: 3, Max: math.MaxInt64}, // doubling overflows before it meets Max
		{Min: math.MaxInt64, Max: math.MaxInt64},
	} {
		for _, try := range []int{0, 1, 2, 10, 61, 62, 63, 64, 100, math.MaxInt} {
			if least, most := b.delay(try, 0), b.delay(try, almostOne); least < b.Min/2 || least > most || most > b.Max {
				t.Errorf("%+v, try %d: pause %v to %v", b, try, least, most)
			}
		}
		if last := b.delay(math.MaxInt, 0); last != b.Max/2 {
			t.Errorf("%+v: the pause ends at %v, want %v", b, last, b.Max/2)
		}
	}
}

// The lock is held for longer than the caller may wait. With LeaseEnd the caller is refused at once, wherever the
// holder is, and whether Options.Wait or the context's deadline comes first.
func TestPolicyLeaseEndGivesUp(t *testing.T) {
	type situation struct {
		here, behind bool // here: in this process, otherwise in another; behind: behind another caller
		lease        time.Duration
		deadline     time.Duration // of the context
		tries        int
	}
	each(t, map[string]situation{
		"another process":           {false, false, 10*s + 1, time.Hour, 1},
		"another, by its deadline":  {false, false, 5 * s, 4 * s, 1},
		"another, without end":      {false, false, 1 << 62, time.Hour, 1},
		"another, behind a caller":  {false, true, 10*s + 1, time.Hour, 1},
		"this process":              {true, false, 10*s + time.Millisecond, time.Hour, 1},
		"this one, by its deadline": {true, false, 5 * s, 4 * s, 1},
	}, func(t *testing.T, tt situation) {
		var g Locks
		var f fake
		if tt.here {
			l := lock(t, &g, &f, Options{Lease: tt.lease})
			defer mustUnlock(t, l)
		} else {
			f.Put("k", NewToken(BondOf("k"), "", time.Now()), tt.lease)
		}
		if tt.behind {
			wait(t.Context(), &g, &f, Options{Wait: time.Hour, Policy: LeaseEnd})
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
		defer cancel()
		r := <-wait(ctx, &g, &f, Options{Wait: 10 * s, Policy: LeaseEnd})
		if _, named := errors.AsType[heldError](r.err); !named || !errors.Is(r.err, ErrTimeout) || r.took > 0 {
			t.Errorf("after %v: %v", r.took, r.err)
		}
		f.wantCalls(t, "Take", tt.tries)
		redistest.Elapse(time.Minute - 1)
	})
}

// If the lease ends in time, the caller sleeps once until then: two tries, instead of one every few milliseconds.
// If Redis does not report how long the lease lasts, the caller has to poll.
func TestPolicyLeaseEndSleeps(t *testing.T) {
	each(t, map[string]bool{"Redis tells the end": true, "nobody knows the end": false}, func(t *testing.T, told bool) {
		var g Locks
		var f fake
		var a Algorithm = &f
		if !told {
			a = secretive{&f}
		}
		f.Put("k", "another", s)
		r := <-wait(t.Context(), &g, a, Options{Policy: LeaseEnd})
		if r.err != nil {
			t.Fatal(r.err)
		}
		if r.took < s || r.took > s+20*time.Millisecond {
			t.Errorf("it was taken after %v", r.took)
		}
		if n := len(f.Made("Take")); told != (n == 2) || !told && n < 50 {
			t.Errorf("%d tries", n)
		}
		mustUnlock(t, r.lease)
	})
}

// A secretive fake does not tell how long a lease lasts.
type secretive struct{ *fake }

func (f secretive) Take(ctx context.Context, key, token, _ string, lease time.Duration) (Attempt, error) {
	found, err := f.fake.Take(ctx, key, token, "", lease)
	found.Left = 0
	return found, err
}

// The holder extends its lease while others sleep. They try again when the lease would have ended, and give up as
// soon as it lasts beyond their wait.
func TestPolicyLeaseEndMoves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var f fake
		f.Put("k", "another", 4*s)
		for _, d := range []time.Duration{3 * s, 6 * s} {
			time.AfterFunc(d, func() { f.Put("k", "another", 4*s) })
		}
		r := <-wait(t.Context(), new(Locks), &f, Options{Wait: 8 * s, Policy: LeaseEnd})
		if r.took.Truncate(s) != 7*s || !errors.Is(r.err, ErrTimeout) {
			t.Errorf("after %v: %v", r.took, r.err)
		}
		f.wantCalls(t, "Take", 3)
	})
}

// A lock without an expiry, which no algorithm here makes, never becomes free by itself.
func TestPolicyKeyWithoutEnd(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p := newProcess(t, server)
		server.Do(t, "SET", "k", NewToken(BondOf("k"), "", time.Now()))
		o := patient
		o.Policy = LeaseEnd
		if _, err := p.lock(t, o); !errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
		p.spin.wantCalls(t, "Take", 1)
		server.Do(t, "DEL", "k")
	})
}

// NoWait means one try, and no wait in line, whatever the policy.
func TestPolicyNoWait(t *testing.T) {
	each(t, map[string]Policy{"Poll": Poll, "LeaseEnd": LeaseEnd}, func(t *testing.T, p Policy) {
		var g Locks
		var f fake
		o := Options{Wait: NoWait, Policy: p}
		wantNone := func() {
			t.Helper()
			if r := <-wait(t.Context(), &g, &f, o); !errors.Is(r.err, ErrTimeout) || r.took > 1 {
				t.Errorf("after %v: %v", r.took, r.err)
			}
		}
		f.Put("k", "another", s)
		wantNone()
		redistest.Elapse(s)
		l := lock(t, &g, &f, o)
		wantNone()
		f.wantCalls(t, "Take", 2)
		mustUnlock(t, l)
	})
}

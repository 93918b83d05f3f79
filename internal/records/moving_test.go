package records

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// A laggard is a client of a Redis that can become slow, and then handles one round trip at a time.
type laggard struct {
	transport.Client
	lag time.Duration
	// refuses returns the replies of a Redis that refuses a round trip until the lag has passed. If it is nil,
	// the replies are late instead.
	refuses func(c transport.Client, key string, commands []transport.Command) []any

	mu    sync.Mutex // guards the rest
	lags  bool
	begun time.Time // when the round trip was sent for the first time; zero: there is none
}

func (l *laggard) set(lags bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lags = lags
}

// Do implements [transport.Client].
func (l *laggard) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	switch late, putOff := l.now(); {
	case putOff:
		return l.refuses(l.Client, key, commands), nil
	case late:
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: no reply: %w", transport.ErrUnavailable, ctx.Err())
		case <-time.After(l.lag):
		}
	}
	return l.Client.Do(ctx, key, commands...)
}

// Subscribe implements [transport.Client]. While Redis lags, it does not return in time.
func (l *laggard) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	if late, putOff := l.now(); late || putOff {
		<-ctx.Done()
	}
	return l.Client.Subscribe(ctx, channel)
}

// settle ends the lag, and waits until nothing is left of the requests.
func (l *laggard) settle() {
	l.set(false)
	lapse(time.Minute)
}

// now returns how a round trip fares now.
func (l *laggard) now() (late, putOff bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lags || l.refuses == nil {
		return l.lags, false
	}
	if l.begun.IsZero() {
		l.begun = time.Now()
	}
	putOff = time.Since(l.begun) < l.lag
	if !putOff {
		l.begun = time.Time{}
	}
	return false, putOff
}

var errRehashing = errors.New("TRYAGAIN Multiple keys request during rehashing of slot")

// rehashing replies like a slot that moves from one node to another: the old node has the record, and the new
// node creates a lock that was free.
func rehashing(c transport.Client, key string, commands []transport.Command) []any {
	replies := make([]any, len(commands))
	for i, command := range commands {
		replies[i] = errRehashing
		if command[0] == "SET" || command[0] == "PTTL" {
			one, _ := c.Do(context.Background(), key, command)
			replies[i] = one[0]
		}
	}
	return replies
}

// lagging returns the store of a process, and its client.
func lagging(t *testing.T, s *redistest.Server, o Options) (*Engine, *laggard) {
	c := transport.NewRedigo(s.Pool(t, 8), o.Timeout)
	t.Cleanup(func() { _ = c.Close() })
	l := &laggard{Client: c}
	st := New(l, o)
	t.Cleanup(func() { _ = st.Close() })
	return st, l
}

// A request takes at most LockWait and one and a quarter Timeouts. That holds even if each round trip is late, or
// is refused, for nearly a Timeout: its own, the one of the request before it, and both commits.
func TestARequestIsOverInTime(t *testing.T) {
	t.Parallel()
	const wait, timeout = 10 * time.Second, 2 * time.Second
	const most = wait + timeout + timeout/4
	for name, refuses := range map[string]func(transport.Client, string, []transport.Command) []any{"late": nil, "put off": rehashing} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var longest time.Duration
			late := 0 // requests that succeeded after their LockWait
			for turn := range 8 {
				lag, login := timeout/2+time.Duration(turn)*timeout/16, turn%3 // login: the request that logs in
				for free := wait - 2*timeout; free < wait; free += timeout / 4 {
					redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
						o := Options{Timeout: timeout}
						st, l := lagging(t, s, o)
						create(t, st, "first")
						takeBy(t, st, Terms{TTL: time.Second}).Release(t.Context()) // from now on Redis has the scripts
						other := take(t, onPool(s.Pool(t, 2), o))
						l.lag, l.refuses = lag, refuses
						var all sync.WaitGroup
						var mu sync.Mutex
						for i := range 4 {
							all.Go(func() {
								begun := time.Now()
								h, _, err := st.Take(t.Context(), theID, Terms{LockWait: wait})
								switch {
								case err != nil:
								case i == login:
									err = h.Renew(t.Context(), newID, []byte("next"))
								default:
									err = h.Save(t.Context(), []byte("next"))
								}
								took := time.Since(begun)
								mu.Lock()
								defer mu.Unlock()
								longest = max(longest, took)
								if err == nil && took > wait {
									late++
								}
							})
							synctest.Wait() // first come, first served
						}
						lapse(free)
						l.set(true)
						save(t, other, "other")
						all.Wait()
						l.settle()
					})
				}
			}
			if longest > most || late == 0 {
				t.Errorf("the longest request took %v, want at most %v; %d succeeded late", longest, most, late)
			}
		})
	}
}

// A slot moves to another node for longer than a Timeout. The requests for its sessions wait until they give up,
// and nothing else happens. A request that gets the session has it for a whole lease, however long its token has
// been in the lock.
func TestASlotThatMovesIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, moves := range []time.Duration{2400 * time.Millisecond, 5 * time.Second} {
		redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
			o := Options{Timeout: 2 * time.Second, Lease: 2500 * time.Millisecond}
			st, l := lagging(t, s, o)
			create(t, st, "first")
			l.lag, l.refuses = time.Hour, rehashing
			l.set(true)
			begun := time.Now()
			var all sync.WaitGroup
			for i := range 5 {
				all.Go(func() {
					h, _, err := st.Take(t.Context(), theID, Terms{})
					if err != nil {
						t.Errorf("request %d: %v", i, err)
						return
					}
					if took := time.Since(begun); i == 0 && took > moves+100*time.Millisecond {
						t.Errorf("the request waited for %v", took)
					}
					if i == 0 {
						lapse(200 * time.Millisecond) // the lease was not extended yet
						_, _, err = onPool(s.Pool(t, 1), o).Take(t.Context(), theID, Terms{LockWait: 1})
						wantError(t, "another process", err, ErrTimeout)
					}
					save(t, h, "next")
				})
				synctest.Wait()
			}
			lapse(moves)
			l.set(false)
			all.Wait()
			l.settle()
		})
	}
}

// A request that gives up says why it had to wait.
func TestASlotThatMovesForTooLong(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, l := lagging(t, s, Options{Timeout: 2 * time.Second})
		create(t, st, "first")
		l.lag, l.refuses = time.Hour, rehashing
		l.set(true)
		for _, wait := range []time.Duration{1, 5 * time.Second} {
			begun := time.Now()
			_, _, err := st.Take(t.Context(), theID, Terms{LockWait: wait})
			wantError(t, "Take", err, ErrUnavailable)
			if !scripting.Moving(err) || !errors.Is(err, errRehashing) {
				t.Error(err)
			}
			if took, most := time.Since(begun), max(wait, 2*time.Second)+250*time.Millisecond; took < wait || took > most {
				t.Errorf("with a LockWait of %v the request took %v", wait, took)
			}
		}
		l.settle()
		save(t, take(t, st), "next")
	})
}

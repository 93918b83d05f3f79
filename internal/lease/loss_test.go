package lease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// wantLost checks that err is an ErrLost and nothing else, and says why.
func wantLost(t *testing.T, err error, why string) {
	t.Helper()
	if !errors.Is(err, ErrLost) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrExpired) || errors.Is(err, ErrForeign) {
		t.Errorf("%v is not what it should be: an ErrLost", err)
	}
	if err != nil && !strings.Contains(err.Error(), why) {
		t.Errorf("%q does not say %q", err, why)
	}
}

// A holder that has lost its lock learns why.
func TestTheCauseOfALossSaysWhy(t *testing.T) {
	for name, tt := range map[string]struct {
		options Options
		extend  error
		lose    func(l *Lease)
		why     string
	}{
		"held for too long":         {Options{Lease: 3 * s, MaxHold: 7 * s}, nil, nil, "held for longer than MaxHold, which is 7s"},
		"Redis is away":             {Options{Lease: 9 * s}, errRefused, nil, "no try to extend it has succeeded for 6s: redis is unavailable"},
		"another has it":            {Options{}, ErrLost, nil, "lock was lost"},
		"its key is gone":           {Options{}, ErrExpired, nil, "its key is gone"},
		"its key is something else": {Options{}, ErrForeign, nil, "the lock's key belongs to something else"},
		"what it had read is void":  {Options{}, nil, func(l *Lease) { l.Lose(errNoReply) }, "the reply was lost"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				f := fake{}
				if tt.extend != nil {
					f.extend = func(context.Context, int, func() error) error { return tt.extend }
				}
				l := lock(t, &g, &f, tt.options)
				ctx, cancel := context.WithCancelCause(t.Context())
				l.OnLost(cancel)
				if tt.lose != nil {
					tt.lose(l)
				}
				<-ctx.Done()
				wantLost(t, context.Cause(ctx), tt.why)
				late, cancel := context.WithCancelCause(t.Context())
				l.OnLost(cancel)
				wantLost(t, context.Cause(late), tt.why)
			})
		})
	}
}

// A process that was paused finds its lease over before its timer does.
func TestALossInAPause(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		l := lock(t, &g, &fake{}, Options{})
		l.mu.Lock()
		l.end = time.Now().Add(-3 * s)
		l.mu.Unlock()
		if _, held, _ := l.Stop(false); held {
			t.Error("it is held")
		}
		wantLost(t, l.Why(), "ran out 3s ago, and this process has not tried to extend it")
		l.Leave()
	})
}

// An extension that has succeeded ends all earlier trouble.
func TestTroubleThatIsOverIsNoReason(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{extend: func(_ context.Context, n int, do func() error) error {
			if n == 1 {
				return errRefused
			}
			return do()
		}}
		l := lock(t, &g, &f, Options{Lease: 3 * s})
		time.Sleep(2 * s) // for two extensions
		l.mu.Lock()
		l.end = time.Now().Add(-s)
		l.mu.Unlock()
		if _, held, _ := l.Stop(false); held {
			t.Error("it is held")
		}
		wantLost(t, l.Why(), "this process has not tried to extend it")
		l.Leave()
	})
}

// Who gives back a lock that it has lost learns what became of it, and why.
func TestUnlockOfWhatWasLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{Lease: s, MaxHold: s})
		<-l.Lost()
		err := l.Unlock(t.Context())
		if want := "nobody took it (it was held for longer than MaxHold, which is 1s)"; !errors.Is(err, ErrExpired) || !strings.Contains(err.Error(), want) {
			t.Errorf("Unlock: %v, want %q in it", err, want)
		}
	})
}

// Redis says who has the lock instead.
func TestALossNamesTheTaker(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		for name, tt := range map[string]struct{ value, why string }{
			"a holder":       {newToken("POST /cart", time.Now()), " POST /cart has it now"},
			"the next":       {channelPrefix + "x/1", "it is the turn of another process"},
			"something else": {"else", "its key has been overwritten"},
			"nothing at all": {"", "its key has been overwritten"},
		} {
			l := mustLock(t, newProcess(t, server, patient), "k")
			server.Do(t, "SET", "k", tt.value)
			err := l.Extend(t.Context(), time.Minute)
			wantLost(t, err, tt.why)
			wantLost(t, l.Why(), tt.why)
			wantLost(t, l.Unlock(t.Context()), tt.why)
			if t.Failed() {
				t.Log(name)
			}
			server.Do(t, "DEL", "k")
		}
	})
}

// The caller that is one too many learns who has the lock, by what this process knows: its own
// holder, or the one that was seen at Redis.
func TestTooManyNamesTheHolder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var f fake
		var here, there Group
		o := Options{Label: "GET /slow", Held: held, MaxWaiters: 1}
		l := lock(t, &here, &f, o)
		for name, g := range map[string]*Group{"held here": &here, "held elsewhere": &there} {
			ctx, cancel := context.WithCancel(t.Context())
			wait := func() { _, _ = g.Lock(ctx, "k", &f, Options{}) }
			go wait() // with here it waits in line, with there at Redis
			time.Sleep(s)
			if g == &there {
				go wait()
				time.Sleep(s)
			}
			made := len(f.Made("Take"))
			_, err := g.Lock(t.Context(), "k", &f, o)
			who, named := errors.AsType[heldError](err)
			if !errors.Is(err, ErrTooManyWaiters) || errors.Is(err, ErrTimeout) || !named || who.owner.Label != "GET /slow" {
				t.Errorf("%s: %v", name, err)
			}
			if len(f.Made("Take")) != made {
				t.Errorf("%s: Redis was asked", name)
			}
			cancel()
			time.Sleep(s)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An empty value is no token of a lock: it is foreign, as any other that is none.
func TestALockThatIsEmptyIsForeign(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		server.Do(t, "SET", "k", "")
		o := patient
		o.Wait = NoWait
		_, err := newProcess(t, server, o).Lock(t.Context(), "k")
		if !errors.Is(err, ErrTimeout) || !errors.Is(err, ErrForeign) {
			t.Errorf("error %v, want both ErrTimeout and ErrForeign", err)
		}
	})
}

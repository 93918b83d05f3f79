package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// The pause after a try: by the backoff, or until the holder's lease ends. Sleeping
// on until somewhat later costs little; waking too early costs another try.
func TestPolicyNext(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	backoff := Backoff{Min: 4 * ms, Max: 16 * ms}
	for name, tt := range map[string]struct {
		policy         Policy
		left, patience time.Duration
		want           time.Duration
		worth          bool
	}{
		"Poll":                     {Poll, s, 10 * s, 4 * ms, true},
		"Poll without hope":        {Poll, 20 * s, 10 * s, 4 * ms, true},
		"Poll for ever":            {Poll, forever, 10 * s, 4 * ms, true},
		"LeaseEnd":                 {LeaseEnd, s, 10 * s, s + 5*ms, true},
		"LeaseEnd, just enough":    {LeaseEnd, 10*s - 4*ms, 10 * s, 10*s - 2*ms, true},
		"LeaseEnd, at the end":     {LeaseEnd, 10 * s, 10 * s, 10 * s, true},
		"LeaseEnd, too long":       {LeaseEnd, 10*s + 1, 10 * s, 0, false},
		"LeaseEnd, for ever":       {LeaseEnd, forever, 10 * s, 0, false},
		"LeaseEnd, nobody knows":   {LeaseEnd, 0, 10 * s, 4 * ms, true},
		"LeaseEnd, no time at all": {LeaseEnd, 1, -1, 0, false},
	} {
		o := Options{Policy: tt.policy, Backoff: backoff}
		if got, worth := o.next(0, tt.left, tt.patience, 0.99999999); got.Round(ms) != tt.want || worth != tt.worth {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, worth, tt.want, tt.worth)
		}
	}
}

// What is left of a wait ends with Options.Wait or the caller's deadline, whichever
// comes first.
func TestPolicyWaitLeft(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sooner, cancel := context.WithTimeout(t.Context(), 3*s)
		defer cancel()
		later, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for name, tt := range map[string]struct {
			ctx  context.Context
			want time.Duration
		}{
			"no deadline":    {t.Context(), 10 * s},
			"later deadline": {later, 10 * s},
			"sooner":         {sooner, 3 * s},
		} {
			w := Lease{caller: tt.ctx, began: time.Now(), options: &Options{Wait: 10 * s}}
			if got := w.left(); got != tt.want {
				t.Errorf("%s: %v", name, got)
			}
		}
		w := Lease{caller: sooner, began: time.Now(), options: &Options{Wait: 10 * s}}
		time.Sleep(2 * s)
		if got := w.left(); got != s {
			t.Errorf("after a while: %v", got)
		}
	})
}

// NoWait is one try, and no wait in line.
func TestPolicyNoWait(t *testing.T) {
	for _, p := range []Policy{Poll, LeaseEnd} {
		t.Run(map[Policy]string{Poll: "Poll", LeaseEnd: "LeaseEnd"}[p], func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				var f fake
				o := Options{Wait: NoWait, Policy: p}
				f.Put("k", "another", s)
				begin := time.Now()
				if _, err := g.Lock(t.Context(), "k", &f, o); !errors.Is(err, ErrTimeout) {
					t.Errorf("held by another process: %v", err)
				}
				time.Sleep(s)
				l := lock(t, &g, &f, o)
				if _, err := g.Lock(t.Context(), "k", &f, o); !errors.Is(err, ErrTimeout) {
					t.Errorf("held here: %v", err)
				}
				if took := time.Since(begin); took > s+2 || len(f.Made("Take")) != 2 {
					t.Errorf("%d tries in %v", len(f.Made("Take")), took)
				}
				mustUnlock(t, l)
			})
		})
	}
}

// A key without end, which no lock of this kind makes, is never free by itself.
func TestPolicyKeyWithoutEnd(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		o := patient
		o.Policy = LeaseEnd
		spin, proxy := newProxied(t, server, o)
		server.Do(t, "SET", "k", newToken("", time.Now()))
		if _, err := spin.Lock(t.Context(), "k"); !errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
		if n := proxy.Requests(); n != 1 {
			t.Errorf("%d commands", n)
		}
	})
}

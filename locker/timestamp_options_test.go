package locker

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// What cannot work is the error of every Lock.
func TestTimestampUnusable(t *testing.T) {
	t.Parallel()
	_, err := NewTimestamp(nil, Options{Lease: -1}).Lock(t.Context(), "k")
	if err == nil || !strings.Contains(err.Error(), "Options.Lease is -1ns") {
		t.Errorf("wrong options: %v", err)
	}
	if _, err := NewTimestamp(nil, Options{}).Lock(t.Context(), "k"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("no pool: %v", err)
	}
}

// A Redis that hangs is waited for as long as Timeout says.
func TestTimestampTimeout(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		proxy := redistest.NewProxy(t, server)
		proxy.Inject(func(redistest.Command) redistest.Fault { return redistest.HangCommand })
		for _, o := range []Options{{Timeout: s / 4}, {}} {
			begin := time.Now()
			_, err := NewTimestamp(proxy.Pool(t, 1), o).Lock(t.Context(), "k")
			if took, want := time.Since(begin), cmp.Or(o.Timeout, DefaultTimeout); !errors.Is(err, ErrUnavailable) || took < want || took > want+2*s {
				t.Errorf("Timeout %v: after %v: %v", o.Timeout, took, err)
			}
		}
	})
}

// No time at all means to delete the lock. So that is not what an extension by less
// than a millisecond sends.
func TestTimestampExtendByNothing(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		proxy := redistest.NewProxy(t, server)
		a := timestamp{runner: runnerOn(proxy.Pool(t, 1), 0)}
		for _, d := range []time.Duration{-s, 0, 1, time.Millisecond, s} {
			_ = a.Extend(t.Context(), "k", "token", d) // which nobody has
		}
		var sent []string
		for _, cmd := range proxy.Commands() {
			if cmd.Name == "EVALSHA" {
				sent = append(sent, cmd.Args[6])
			}
		}
		if want := []string{"1", "1", "1", "1", "1000"}; !slices.Equal(sent, want) {
			t.Errorf("sent %q, want %q", sent, want)
		}
	})
}

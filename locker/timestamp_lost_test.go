package locker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Whoever no longer has the lock is told whether another took it. In no case does
// it touch what it finds.
func TestTimestampLostOrExpired(t *testing.T) {
	for name, test := range map[string]struct {
		happen func(t *testing.T, server *redistest.Server)
		want   error
	}{
		"it ran out": {
			happen: func(t *testing.T, server *redistest.Server) {
				letPass(t, server, "k", time.Hour)
			},
			want: ErrExpired,
		},
		"it was deleted": {
			happen: func(t *testing.T, server *redistest.Server) { server.Do(t, "DEL", "k") },
			want:   ErrExpired,
		},
		"it ran out, and a peer took it": {
			happen: func(t *testing.T, server *redistest.Server) {
				letPass(t, server, "k", time.Hour)
				newPeer(t, server, "k").take()
			},
			want: ErrLost,
		},
		"it ran out, a peer took it, and that ran out, too": {
			happen: func(t *testing.T, server *redistest.Server) {
				letPass(t, server, "k", time.Hour)
				newPeer(t, server, "k").take()
				letPass(t, server, "k", time.Hour)
			},
			want: ErrLost,
		},
		"it ran out, and a process took it": {
			happen: func(t *testing.T, server *redistest.Server) {
				letPass(t, server, "k", time.Hour)
				newContender(t, server, "k").take()
			},
			want: ErrLost,
		},
		"it ran out, a process took it, and that ran out, too": {
			happen: func(t *testing.T, server *redistest.Server) {
				letPass(t, server, "k", time.Hour)
				newContender(t, server, "k").take()
				letPass(t, server, "k", time.Hour)
			},
			want: ErrLost,
		},
		"it was deleted, and a process took it": {
			happen: func(t *testing.T, server *redistest.Server) {
				server.Do(t, "DEL", "k")
				newContender(t, server, "k").take()
			},
			want: ErrLost,
		},
		"it lost its note": {
			happen: func(t *testing.T, server *redistest.Server) { server.Do(t, "DEL", noteKey("k")) },
			want:   ErrLost,
		},
	} {
		t.Run(name, func(t *testing.T) {
			onServers(t, func(t *testing.T, server *redistest.Server) {
				for _, command := range remains { // taken over when stale, or when free
					server.Do(t, "FLUSHDB")
					server.Do(t, command[0].(string), command[1:]...)
					c := newContender(t, server, "k")
					c.take()
					test.happen(t, server)
					wantRefused(t, server, c, test.want)
				}
			})
		})
	}
}

// wantRefused says that c can neither extend nor release what it held.
func wantRefused(t *testing.T, server *redistest.Server, c *contender, want error) {
	t.Helper()
	before := contents(t, server)
	ctx := context.Background()
	if err := c.Extend(ctx, "k", c.token, time.Hour); !errors.Is(err, want) {
		t.Errorf("Extend: %v, want %v", err, want)
	}
	if err := c.Release(ctx, "k", c.token, 0); !errors.Is(err, want) {
		t.Errorf("Release: %v, want %v", err, want)
	}
	if err := c.Release(ctx, "k", c.token, time.Hour); !errors.Is(err, want) {
		t.Errorf("Release with a delay: %v, want %v", err, want)
	}
	if after := contents(t, server); after != before {
		t.Errorf("%q became %q", before, after)
	}
}

// contents is the lock's value and note.
func contents(t *testing.T, server *redistest.Server) [2]string {
	value, _ := server.Get(t, "k")
	note, _ := server.Get(t, noteKey("k"))
	return [2]string{value, note}
}

// A lock that was won free, then deleted, and taken by a peer within the lease: the
// key holds a time to come, as before, but not ours.
func TestTimestampDeletedAndTaken(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		l := mustTake(t, newTimestamp(t, server, patient), "k")
		server.Do(t, "DEL", "k")
		p := newPeer(t, server, "k")
		p.lease += s
		if !p.take() {
			t.Fatal("the peer does not get a free lock")
		}
		if err := wantHeld(t, server, "k"); errors.As(err, new(*HeldError)) {
			t.Errorf("%v: but that one has it no more", err)
		}
		wantLost(t, server, l)
	})
}

// The watchdog finds out, too, long before the lease is over.
func TestTimestampWatchdog(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		o := patient
		o.Lease = 1500 * time.Millisecond
		l := mustTake(t, newTimestamp(t, server, o), "k")
		end := valueOf(t, server, "k")
		eventually(t, "an extension", func() bool { return valueOf(t, server, "k").After(end) })
		server.Do(t, "DEL", "k")
		newPeer(t, server, "k").take()
		<-l.Lost()
		if !errors.Is(l.Unlock(t.Context()), ErrLost) {
			t.Error("Unlock found nothing wrong")
		}
	})
}

package locker

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// The value is the moment at which the lock ends, by Redis's clock, to the millisecond: after it is taken,
// extended, and released with a delay. Until then peers and other processes are excluded.
func TestTimestampValue(t *testing.T) {
	inTheseYears(t, func(t *testing.T, server *redistest.Server) {
		redistest.Elapse(123_999 * time.Microsecond)
		for _, delay := range []time.Duration{time.Hour, 20 * s} { // longer than the lease, and shorter
			l := mustLock(t, newTimestamp(t, server, patient))
			wantUntil(t, server, "taken", time.Now().Add(patient.Lease))
			redistest.Elapse(10 * s)
			if err := l.Extend(t.Context(), time.Hour); err != nil {
				t.Error(err)
			}
			wantUntil(t, server, "extended", time.Now().Add(time.Hour))
			if err := l.UnlockAfter(t.Context(), delay); err != nil {
				t.Error(err)
			}
			wantUntil(t, server, "given back with a delay", time.Now().Add(delay))
			p := newPeer(t, server, patient.Lease)
			redistest.Elapse(delay - time.Millisecond)
			if p.take() {
				t.Error("a peer took the lock too early")
			}
			wantHeld(t, server, true)
			redistest.Elapse(2 * time.Millisecond)
			if !p.take() {
				t.Error("a peer did not get the lock afterwards")
			}
			wantHeld(t, server, false)
			p.release()
			mustUnlock(t, mustLock(t, newTimestamp(t, server, noWait())))
		}
	})
}

// Redis counts in whole milliseconds, while the holder counts from the moment before the command was sent. So the
// lock lasts to the end of the last millisecond. Otherwise another could have it while the holder still relies on
// it.
func TestTimestampLastMillisecond(t *testing.T) {
	inTheseYears(t, func(t *testing.T, server *redistest.Server) {
		c, other := newContender(t, server), newContender(t, server)
		c.take()
		redistest.Elapse(patient.Lease)
		if found, err := other.Take(t.Context(), "k", "other", patient.Lease); err != nil || found.Taken || found.Left != time.Millisecond {
			t.Errorf("at the end: %+v, %v, want that it is held for 1ms more", found, err)
		}
		// A Release without a delay deletes the lock. An Extend by no time does not.
		for _, d := range []time.Duration{0, -s, 1, patient.Lease} {
			if err := c.Extend(t.Context(), "k", c.token, d); err != nil {
				t.Errorf("Extend at the end, by %v: %v", d, err)
			}
		}
		redistest.Elapse(patient.Lease + time.Millisecond)
		c.wantRefused(server, ErrExpired)
		if other.take(); !other.holds {
			t.Error("another did not get it after the end")
		}
	})
}

// The fractions of PHP's microtime(true) * 1000 are accepted.
func TestTimestampFraction(t *testing.T) {
	inTheseYears(t, func(t *testing.T, server *redistest.Server) {
		c, now := newContender(t, server), time.Now().UnixMilli()
		for value, left := range map[string]time.Duration{
			strconv.FormatInt(now, 10) + ".4":      1 * time.Millisecond,
			strconv.FormatInt(now+999, 10) + ".25": s,
			strconv.FormatInt(now+1000, 10) + ".0": s + time.Millisecond,
			strconv.FormatInt(now+1000, 10):        s + time.Millisecond,
			strconv.FormatInt(now-1, 10) + ".9":    0,
			longAgo + ".4":                         0,
		} {
			begin(t, server, [2]string{value})
			if found, err := c.Take(t.Context(), "k", c.token, patient.Lease); err != nil || found.Taken != (left == 0) || found.Left != left {
				t.Errorf("at %d the value is %s: %+v, %v, want %v left", now, value, found, err, left)
			}
		}
	})
}

// With LocalClock this host's clock counts, and Redis is not asked for the time.
func TestTimestampLocalClock(t *testing.T) {
	inTheseYears(t, func(t *testing.T, server *redistest.Server) {
		server.Fake(func(f *fakeredis.Server) { f.NoPerm = map[string]bool{"time": true} })
		if _, err := newTimestamp(t, server, noWait()).Lock(t.Context(), "k"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("by a clock that nobody may read: %v", err)
		}
		o := noWait()
		o.LocalClock = true
		l := mustLock(t, newTimestamp(t, server, o))
		wantUntil(t, server, "taken", time.Now().Add(patient.Lease))
		onAClient := New(TimestampAlgorithm(transport.NewRedigo(server.Pool(t, 4), o.Timeout)), o)
		for what, another := range map[string]Locker{"NewTimestamp": newTimestamp(t, server, o), "New": onAClient} {
			if _, err := another.Lock(t.Context(), "k"); !errors.Is(err, ErrTimeout) {
				t.Errorf("another process by %s, with the same clock: %v", what, err)
			}
		}
		mustExtend(t, l)
		mustUnlock(t, l)
	})
}

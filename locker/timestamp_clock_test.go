package locker

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A clockwork is a Redis whose clock stands still, and a process that goes by it.
type clockwork struct {
	*contender
	server *redistest.Server
	now    time.Time
}

func newClockwork(t *testing.T) *clockwork {
	server := redistest.Embedded(t)
	c := &clockwork{newContender(t, server, "k"), server, time.UnixMilli(1_900_000_000_000)}
	c.pass(0)
	return c
}

// pass moves Redis's clock. Keys do not vanish by that.
func (c *clockwork) pass(d time.Duration) {
	now := c.now.Add(d)
	c.now = now
	c.server.Clock(func() time.Time { return now })
}

func (c *clockwork) value() string {
	value, _ := c.server.Get(c.t, "k")
	return value
}

// another returns what somebody else's try comes to.
func (c *clockwork) another() lease.Attempt {
	found, err := c.Take(context.Background(), "k", rand.Text(), "", patient.Lease)
	if err != nil {
		c.t.Error(err)
	}
	return found
}

// Redis says which time it is, to the millisecond. So the clocks of the hosts
// need not agree.
func TestTimestampRedisClock(t *testing.T) {
	t.Parallel()
	c := newClockwork(t)
	c.pass(123_999 * time.Microsecond)
	c.take()
	if want := "1900000060123"; c.value() != want {
		t.Errorf("taken: the value is %s, want %s", c.value(), want)
	}
	c.pass(30 * s)
	if found := c.another(); found.Taken || found.Left > 30*s+time.Millisecond || found.Left < 30*s {
		t.Errorf("another's try, halfway: %+v", found)
	}
	if err := c.Extend(t.Context(), "k", c.token, time.Hour); err != nil {
		t.Errorf("Extend: %v", err)
	}
	if want := "1900003630123"; c.value() != want {
		t.Errorf("extended: the value is %s, want %s", c.value(), want)
	}
	if err := c.Release(t.Context(), "k", c.token, 2*time.Hour); err != nil {
		t.Errorf("Release: %v", err)
	}
	if want := "1900007230123"; c.value() != want {
		t.Errorf("given back with a delay: the value is %s, want %s", c.value(), want)
	}
}

// With LocalClock this host's clock counts, whatever Redis thinks.
func TestTimestampLocalClock(t *testing.T) {
	t.Parallel()
	c := newClockwork(t)
	o := patient
	o.LocalClock = true
	before := time.Now().Truncate(time.Millisecond)
	l := mustTake(t, newTimestamp(t, c.server, o), "k")
	after := time.Now()
	end := valueOf(t, c.server, "k")
	if end.Before(before.Add(patient.Lease)) || end.After(after.Add(patient.Lease)) {
		t.Errorf("the value is %v, between %v and %v it should be the lease more", end, before, after)
	}
	o.Wait = NoWait
	if _, err := newTimestamp(t, c.server, o).Lock(t.Context(), "k"); !errors.Is(err, ErrTimeout) {
		t.Errorf("another, who has the same clock: %v", err)
	}
	mustExtend(t, l)
	mustUnlock(t, l)
	if !c.now.After(after.Add(time.Hour)) {
		t.Fatal("the two clocks must differ")
	}
}

// Redis counts in whole milliseconds, while the holder counts from the moment
// before it asked. So the lock lasts to the end of the last millisecond. Otherwise
// another could have it while the holder still relies on it.
func TestTimestampLastMillisecond(t *testing.T) {
	t.Parallel()
	c := newClockwork(t)
	c.take()
	c.pass(patient.Lease)
	if found := c.another(); found.Taken || found.Left != time.Millisecond {
		t.Errorf("at the end: %+v, want that it is held for 1ms more", found)
	}
	if err := c.Extend(t.Context(), "k", c.token, patient.Lease); err != nil {
		t.Errorf("Extend at the end: %v", err)
	}
	c.pass(patient.Lease + time.Millisecond)
	for name, err := range map[string]error{
		"Extend":  c.Extend(t.Context(), "k", c.token, patient.Lease),
		"Release": c.Release(t.Context(), "k", c.token, 0),
	} {
		if !errors.Is(err, ErrExpired) {
			t.Errorf("%s after the end: %v, want %v", name, err, ErrExpired)
		}
	}
	if found := c.another(); !found.Taken {
		t.Errorf("after the end: %+v", found)
	}
}

// PHP's microtime(true) * 1000 has a fraction.
func TestTimestampFraction(t *testing.T) {
	t.Parallel()
	c := newClockwork(t)
	for value, left := range map[string]time.Duration{
		"1900000000000.4":  1 * time.Millisecond,
		"1900000000999.25": s,
		"1900000001000.0":  s + time.Millisecond,
		"1900000001000":    s + time.Millisecond,
		"1899999999999.9":  0,
		"1763686060123.4":  0,
	} {
		c.server.Do(t, "SET", "k", value)
		if found := c.another(); found.Taken != (left == 0) || found.Left != left {
			t.Errorf("at 1900000000000 the value is %s: %+v, want %v left", value, found, left)
		}
	}
}

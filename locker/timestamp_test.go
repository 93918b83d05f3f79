package locker

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// newTimestamp returns the Timestamp of one process, with a pool of its own.
func newTimestamp(t *testing.T, server *redistest.Server, o Options) *Timestamp {
	return NewTimestamp(server.Pool(t, 8), o)
}

// wantHeld checks that a Go process finds the lock held, and whether its error names the holder.
func wantHeld(t *testing.T, server *redistest.Server, named bool) {
	t.Helper()
	_, err := newTimestamp(t, server, noWait()).Lock(t.Context(), "k")
	if !errors.Is(err, ErrTimeout) || errors.Is(err, ErrForeign) || errors.As(err, new(*HeldError)) != named {
		t.Errorf("Lock: %v, want that another has it; named: %v", err, named)
	}
}

// wantUntil checks the time in the value.
func wantUntil(t *testing.T, server *redistest.Server, what string, end time.Time) {
	t.Helper()
	if value, _ := contents(t, server); value != strconv.FormatInt(end.UnixMilli(), 10) {
		t.Errorf("%s: the value is %s, want %d", what, value, end.UnixMilli())
	}
}

// wantRefused checks that c can neither extend nor release the lock that it held, and changes nothing.
func (c *contender) wantRefused(server *redistest.Server, want error) {
	c.t.Helper()
	value, note := contents(c.t, server)
	for what, err := range map[string]error{
		"Extend":               c.Extend(context.Background(), "k", c.token, time.Hour),
		"Release":              c.Release(context.Background(), "k", c.token, 0),
		"Release with a delay": c.Release(context.Background(), "k", c.token, time.Hour),
	} {
		if !errors.Is(err, want) {
			c.t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	if v, n := contents(c.t, server); v != value || n != note {
		c.t.Errorf("%q and %q became %q and %q", value, note, v, n)
	}
}

// A holder that has lost the lock is told whether another took it. It never touches what it finds: if two could
// delete a stale lock, the second would delete the lock of a new holder.
func TestTimestampLostOrExpired(t *testing.T) {
	runsOut := func(*testing.T, *redistest.Server) { redistest.Elapse(patient.Lease + s) }
	deleted := func(t *testing.T, server *redistest.Server) { server.Do(t, "DEL", "k") }
	peerTakes := func(t *testing.T, server *redistest.Server) { newPeer(t, server, patient.Lease+s).take() }
	processTakes := func(t *testing.T, server *redistest.Server) { newContender(t, server).take() }
	type events []func(t *testing.T, server *redistest.Server)
	for name, test := range map[string]struct {
		happen events
		want   error
		free   bool // only if it was taken when free: otherwise the peer may be a loser that changed the value
	}{
		"it ran out":                     {events{runsOut}, ErrExpired, false},
		"it was deleted":                 {events{deleted}, ErrExpired, false},
		"it ran out, and a peer took it": {events{runsOut, peerTakes}, ErrLost, false},
		"it ran out, a peer took it, and that ran out, too":    {events{runsOut, peerTakes, runsOut}, ErrLost, false},
		"it ran out, and a process took it":                    {events{runsOut, processTakes}, ErrLost, false},
		"it ran out, a process took it, and that ran out, too": {events{runsOut, processTakes, runsOut}, ErrLost, false},
		"it was deleted, and a process took it":                {events{deleted, processTakes}, ErrLost, false},
		"it was deleted, and a peer took it":                   {events{deleted, peerTakes}, ErrLost, true},
		"it lost its note": {events{func(t *testing.T, server *redistest.Server) {
			server.Do(t, "DEL", "{k}.owner")
		}}, ErrLost, false},
	} {
		t.Run(name, theseYears(func(t *testing.T, server *redistest.Server) {
			for _, remain := range remains { // taken over when stale, or when free
				if test.free && remain[0] != "" {
					continue
				}
				begin(t, server, remain)
				c := newContender(t, server)
				c.take()
				for _, event := range test.happen {
					event(t, server)
				}
				c.wantRefused(server, test.want)
			}
		}))
	}
}

// A peer has the lock. A Go process waits, without changing anything, and gets the lock when the peer has deleted
// the key. If the peer has died, the process gets it when the peer's time is over, not earlier.
func TestTimestampWaitsForPeer(t *testing.T) {
	for name, dies := range map[string]bool{"gives it back": false, "dies": true} {
		t.Run(name, theseYears(func(t *testing.T, server *redistest.Server) {
			p := newPeer(t, server, 3*s)
			if !p.take() {
				t.Fatal("the peer does not get a free lock")
			}
			wantHeld(t, server, false)
			begin, want := time.Now(), s
			if dies {
				want = 3*s + time.Millisecond
			}
			go func() {
				l := mustLock(t, newTimestamp(t, server, patient))
				if late := time.Since(begin) - want; late < 0 || late > s/10 {
					t.Errorf("the lock was taken after %v, want %v", time.Since(begin), want)
				}
				mustUnlock(t, l)
			}()
			redistest.Elapse(s - 1)
			if value, _ := contents(t, server); value != p.value {
				t.Errorf("waiting changed the peer's value %q to %q", p.value, value)
			}
			if !dies {
				time.AfterFunc(1, func() { p.release() })
			}
			redistest.Elapse(time.Minute)
		}))
	}
}

// The reply to a take is lost. Before the command is repeated, a peer that had seen the stale lock changes the
// value: the process still has the lock. If the lease has expired by then, the repetition is a new try, which
// finds a stale lock, or another's.
func TestTimestampRepeatedTake(t *testing.T) {
	inTheseYears(t, func(t *testing.T, server *redistest.Server) {
		p := newPeer(t, server, patient.Lease+s)
		p.seesStale(server)
		c, other := newContender(t, server), newContender(t, server)
		c.take()
		p.getset()
		if c.take(); !c.holds || p.holds {
			t.Errorf("the process holds the lock: %v; the peer: %v", c.holds, p.holds)
		}
		wantUntil(t, server, "taken again", time.Now().Add(patient.Lease))
		redistest.Elapse(patient.Lease + s)
		if c.take(); !c.holds {
			t.Error("a stale lock was not taken over")
		}
		redistest.Elapse(patient.Lease + s)
		other.take()
		if c.take(); c.holds || !other.holds {
			t.Errorf("the first holds the lock: %v; the other: %v", c.holds, other.holds)
		}
	})
}

// Without contention, a lock costs two round trips, whatever was there. Both run scripts that Redis already has.
func TestTimestampRoundTrips(t *testing.T) {
	inTheseYears(t, func(t *testing.T, server *redistest.Server) {
		proxy := redistest.NewProxy(t, server)
		locks := NewTimestamp(proxy.Pool(t, 1), patient)
		mustUnlock(t, mustLock(t, locks))
		for name, remain := range remains {
			begin(t, server, remain)
			proxy.Forget()
			mustUnlock(t, mustLock(t, locks))
			if commands := proxy.Commands(); len(commands) != 2 || commands[0].Name != "EVALSHA" || commands[1].Name != "EVALSHA" {
				t.Errorf("%s: %q", name, commands)
			}
		}
	})
}

// A note counts only for the value for which it was made: when a peer has taken the lock, no error names the
// process before it. A value that is not a note counts as none.
func TestTimestampOldNote(t *testing.T) {
	inTheseYears(t, func(t *testing.T, server *redistest.Server) {
		value := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
		owner := token("")(time.Now().UnixMilli())
		for _, note := range []string{longAgo + " f " + owner, longAgo + " s " + owner, value, "hello", ""} {
			begin(t, server, [2]string{value, note})
			wantHeld(t, server, false)
		}
	})
}

// The note is beside the lock. In a cluster a script may only touch keys of one slot, which follows from the part
// of a key in braces, or from all of it. No two locks share a note.
func TestTimestampNoteIsBesideTheLock(t *testing.T) {
	inTheseYears(t, func(t *testing.T, server *redistest.Server) {
		for key, note := range map[string]string{
			"k":              "{k}.owner",
			"{k}":            "{k}:owner", // another lock, so another note
			"app:job":        "{app:job}.owner",
			"{id}.lock":      "{id}.lock:owner",
			"app:{id}.lock":  "app:{id}.lock:owner",
			"a{b}{c}":        "a{b}{c}:owner",
			"open{":          "{open{}.owner",
			"a{b":            "{a{b}.owner",
			"{{id}.lock":     "{{id}.lock:owner",
			"{id}}.lock":     "{id}}.lock:owner",
			"app:{id}.{lock": "app:{id}.{lock:owner",
		} {
			l, err := newTimestamp(t, server, patient).Lock(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{key, note}
			slices.Sort(want)
			if keys := server.Keys(t); !slices.Equal(keys, want) {
				t.Errorf("the keys are %q, want %q", keys, want)
			}
			mustUnlock(t, l)
		}
	})
}

// foreign are values that are no time in Unix milliseconds: strings, and a list.
var foreign = []string{
	"42", "hello", "", "ABCDEFGHIJKLMNOPQRSTUVWXYZ 1763686060123 web/1",
	"1763686060", "1763686060.123", // Unix seconds
	"176368606012", "17636860601234", "1763686060123456", // 12, 14 and 16 digits
	"-1763686060123", "1.7636860601234E+12", "1763686060123.4.5",
	" 1763686060123", "1763686060123\n", "17636860601ab",
	"a list",
}

// The key belongs to something else. Lock does not wait for that to change. The value is left as it is, even by a
// process that had the lock before.
func TestTimestampForeign(t *testing.T) {
	inTheseYears(t, func(t *testing.T, server *redistest.Server) {
		for _, value := range foreign {
			begin(t, server, remains["nothing"])
			c := newContender(t, server)
			c.take()
			set := "SET"
			if value == "a list" {
				server.Do(t, "DEL", "k")
				set = "LPUSH"
			}
			server.Do(t, set, "k", value)
			began := time.Now()
			_, err := newTimestamp(t, server, patient).Lock(t.Context(), "k")
			if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), " for k: ") {
				t.Errorf("%q: Lock: %v, want an error that names the key and the reason", value, err)
			}
			wantTook(t, "Lock", began, 0)
			for what, err := range map[string]error{
				"Extend":               c.Extend(t.Context(), "k", c.token, time.Hour),
				"Release":              c.Release(t.Context(), "k", c.token, 0),
				"Release with a delay": c.Release(t.Context(), "k", c.token, time.Hour),
			} {
				if !errors.Is(err, ErrForeign) {
					t.Errorf("%q: %s: %v", value, what, err)
				}
			}
			redistest.Elapse(3 * time.Hour)
			if !server.Exists(t, "k") {
				t.Errorf("%q vanished", value)
			} else if set == "SET" {
				if now, _ := server.Get(t, "k"); now != value {
					t.Errorf("%q became %q", value, now)
				}
			}
		}
	})
}

// A Timestamp needs only the rights for these commands, on the locks and the notes. A refusal by Redis is taken
// neither for a foreign value nor for a free lock.
func TestTimestampLeastRights(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	user := func(name string, rules ...any) Locker {
		server.Do(t, "ACL", append([]any{"SETUSER", name, "on", ">pw", "resetkeys", "resetchannels", "-@all", "+set", "+del", "+eval", "+evalsha", "+time"}, rules...)...)
		pool := &redis.Pool{MaxIdle: 1, Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", server.Addr, redis.DialUsername(name), redis.DialPassword("pw"))
		}}
		t.Cleanup(func() { pool.Close() })
		o := patient
		o.Policy = LeaseEnd
		return NewTimestamp(pool, o)
	}
	for key, locks := range map[string]Locker{
		"app:{job}": user("tagged", "~app:*", "+get"),
		"app:job":   user("plain", "~app:*", "~{app:*}.owner", "+get"),
	} {
		lock := func() *Lease {
			l, err := locks.Lock(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		l := lock()
		mustExtend(t, l)
		mustUnlock(t, l)
		server.Do(t, "SET", key, longAgo)
		if err := lock().UnlockAfter(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
		if _, err := locks.Lock(t.Context(), key); !errors.As(err, new(*HeldError)) {
			t.Errorf("Lock of a key that is locked for an hour: %v", err)
		}
		server.Do(t, "SET", key, "hello")
		if _, err := locks.Lock(t.Context(), key); !errors.Is(err, ErrForeign) {
			t.Errorf("Lock of something else: %v", err)
		}
	}
	_, err := user("blind", "~*").Lock(t.Context(), "k")
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrForeign) || server.Exists(t, "k") {
		t.Errorf("Lock without the right to GET: %v", err)
	}
}

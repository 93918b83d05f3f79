package locker

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// longAgo is the value of a lock whose holder died in 2001.
const longAgo = "1000000000000"

// newTimestamp returns what one process has: a pool and a Timestamp.
func newTimestamp(t *testing.T, server *redistest.Server, o Options) *Timestamp {
	return NewTimestamp(server.Pool(t, 8), o)
}

// newProxiedTimestamp returns a process whose way to Redis leads through a proxy.
// Redis knows the script already.
func newProxiedTimestamp(t *testing.T, server *redistest.Server, o Options) (*Timestamp, *redistest.Proxy) {
	t.Helper()
	mustUnlock(t, mustTake(t, newTimestamp(t, server, patient), "any"))
	proxy := redistest.NewProxy(t, server)
	return NewTimestamp(proxy.Pool(t, 8), o), proxy
}

// mustTake takes key, which is free or becomes so.
func mustTake(t *testing.T, l Locker, key string) *Lease {
	t.Helper()
	lease, err := l.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// noWait are the options of a single try.
func noWait() Options {
	o := patient
	o.Wait = NoWait
	return o
}

// wantHeld says that a Go process finds key locked.
func wantHeld(t *testing.T, server *redistest.Server, key string) error {
	t.Helper()
	_, err := newTimestamp(t, server, noWait()).Lock(t.Context(), key)
	if !errors.Is(err, ErrTimeout) {
		t.Errorf("Lock: %v, want that another has it", err)
	}
	return err
}

// wantLost says that a lease is another's, and that neither Extend nor Unlock
// touches the other's value.
func wantLost(t *testing.T, server *redistest.Server, l *Lease) {
	t.Helper()
	before, _ := server.Get(t, "k")
	if err := l.Extend(t.Context(), time.Hour); !errors.Is(err, ErrLost) {
		t.Errorf("Extend: %v, want %v", err, ErrLost)
	}
	if err := l.Unlock(t.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("Unlock: %v, want %v", err, ErrLost)
	}
	if after, _ := server.Get(t, "k"); after != before {
		t.Errorf("another's value %q became %q", before, after)
	}
}

// letPass makes a lock look as it will when d has passed: it leaves the clock
// alone, and sets back what was written. Keys do not vanish meanwhile.
func letPass(t *testing.T, server *redistest.Server, key string, d time.Duration) {
	t.Helper()
	for _, k := range []string{key, noteKey(key)} {
		text, ok := server.Get(t, k)
		if !ok {
			continue
		}
		value, rest, _ := strings.Cut(text, " ")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			t.Fatalf("%s holds %q", k, text)
		}
		set := strings.TrimSuffix(strconv.FormatInt(n-d.Milliseconds(), 10)+" "+rest, " ")
		server.Do(t, "SET", k, set, "PX", server.Do(t, "PTTL", k))
	}
}

// valueOf returns the moment that the value of key tells.
func valueOf(t *testing.T, server *redistest.Server, key string) time.Time {
	t.Helper()
	ms, err := redis.Int64(server.Do(t, "GET", key), nil)
	if err != nil {
		t.Fatal(err)
	}
	return time.UnixMilli(ms)
}

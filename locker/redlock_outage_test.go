package locker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// With three of five nodes killed or frozen there is no majority. That is said in
// bounded time, naming the nodes; a holder learns that its lock cannot be relied
// on. When they are back, nothing is locked for longer than a lease.
func TestRedlockWithoutMajority(t *testing.T) {
	for name, tt := range map[string]struct {
		fail, mend func(*redistest.Server, testing.TB)
	}{
		"killed": {(*redistest.Server).Stop, (*redistest.Server).Restart},
		"frozen": {(*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers, pools := nodesOf(t, 5, real)
			lock := NewRedlock(pools, chaotic)
			begin := time.Now()
			l, err := lock.Lock(t.Context(), "held")
			if err != nil {
				t.Fatal(err)
			}
			for _, server := range servers[1:4] {
				tt.fail(server, t)
			}
			asked := time.Now()
			_, err = lock.Lock(t.Context(), "k")
			if took := time.Since(asked); took > 3*chaotic.Timeout+s {
				t.Errorf("Lock took %v", took)
			}
			if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrTimeout) {
				t.Errorf("Lock: %v", err)
			}
			for _, part := range []string{"for k: 3 of 5 nodes failed: ", "node 2: ", "node 3: ", "node 4: "} {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("the message %q does not tell %q", err, part)
				}
			}
			if err := l.Extend(t.Context(), time.Minute); !errors.Is(err, ErrUnavailable) {
				t.Errorf("Extend: %v", err)
			}

			eventually(t, "the end of the lease", func() bool { return isLost(l) })
			if held := time.Since(begin); held < chaotic.Lease/2 {
				t.Errorf("given up after %v, before the lease was over", held)
			}
			if err := l.Unlock(t.Context()); !errors.Is(err, ErrUnavailable) {
				t.Errorf("Unlock: %v", err)
			}
			wantIdle(t, &lock.lock.group)

			for _, server := range servers[1:4] {
				tt.mend(server, t)
			}
			mended := time.Now()
			for _, key := range []string{"held", "k"} {
				again, err := lock.Lock(t.Context(), key)
				if err != nil {
					t.Fatalf("when the nodes are back: %v", err)
				}
				mustUnlock(t, again)
			}
			for _, server := range servers {
				eventually(t, "all keys gone", func() bool { return len(server.Keys(t)) == 0 })
			}
			if took := time.Since(mended); took > chaotic.Lease+s {
				t.Errorf("something was locked for %v after that", took)
			}
		})
	}
}

// Whoever holds the lock when two of five nodes go can extend it and give it back.
func TestRedlockHolderOutlivesTwoOfFive(t *testing.T) {
	t.Parallel()
	servers, pools := nodesOf(t, 5, real)
	lock := NewRedlock(pools, chaotic)
	l, err := lock.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	servers[0].Stop(t)
	servers[4].Pause(t)
	time.Sleep(chaotic.Lease + chaotic.Lease/5) // the watchdog is at work
	if isLost(l) {
		t.Error("the lease is lost, though three nodes have it")
	}
	mustExtend(t, l)
	mustUnlock(t, l)
	servers[4].Resume(t)
	again, err := lock.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, again)
}

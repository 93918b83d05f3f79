package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/history"
)

// Increments, reads, logins and logouts of a few sessions, made at once through two
// processes, are linearizable, and all of them are answered.
//
// Reads are in mode ReadOnly, so this also shows that they never go back in time. Among the
// logins are double clicks, of which the first is dropped: the second is never refused.
//
// It holds for each lock, also for those that are not on the record itself.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	var anew atomic.Int64
	t.Cleanup(func() {
		if anew.Load() == 0 {
			t.Error("no session was begun in place of an ended one")
		}
	})
	for lock, visitors := range map[string]int{lockSpin: 4, lockTimestamp: 1, lockLease: 1, lockRedlock: 1} {
		_, args := shared(t, lock)
		var sites history.Sites
		for range 2 {
			sites.Add(demotest.Start(t, args...).URL)
		}
		for range visitors {
			t.Run(lock, func(t *testing.T) {
				t.Parallel()
				v := newVisitor(t, &sites)
				v.Logins = true
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				visit(ctx, t, v, 5)
				anew.Add(int64(v.Summary().Anew))
				if n := v.Summary().Silent; n > 0 {
					t.Errorf("%d requests were not answered", n)
				}
			})
		}
	}
}

func newVisitor(t *testing.T, sites *history.Sites) *history.Visitor {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return &history.Visitor{HTTP: &http.Client{Transport: transport, Timeout: time.Minute}, Site: sites.Any}
}

// visit makes requests from several clients until ctx ends, and checks what they saw.
func visit(ctx context.Context, t *testing.T, v *history.Visitor, clients int) {
	t.Helper()
	seed := rand.Uint64()
	v.Run(ctx, clients, seed)
	sum := v.Summary()
	t.Logf("%d sessions, %d answers, %d of them to writes, %d requests without an answer",
		sum.Sessions, sum.Answered, sum.Writes, sum.Silent)
	if err := v.Check(); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	if sum.Writes == 0 {
		t.Error("no write was answered")
	}
}

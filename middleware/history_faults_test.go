package middleware_test

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/history"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// P1, P3, P4: so they are over networks that lose commands and replies, and where locks are deleted.
// Every answer is right, and every write that was answered is kept.
func TestHistoriesWithReopenDiscardAndUpdateOverFaults(t *testing.T) {
	t.Parallel()
	var struck atomic.Int64
	t.Cleanup(func() {
		if struck.Load() == 0 {
			t.Error("nothing was lost")
		}
	})
	for name, fault := range map[string]redistest.Fault{
		"locks are deleted":   redistest.Pass,
		"replies are lost":    redistest.DropReply,
		"commands are lost":   redistest.DropCommand,
		"replies never come":  redistest.Hang,
		"commands never come": redistest.HangCommand,
	} {
		for with, clients := range map[string]int{"": 12, ", with logins": 5} {
			t.Run(name+with, func(t *testing.T) {
				t.Parallel()
				r := redistest.Real(t)
				var sites history.Sites
				for range 2 {
					p := redistest.NewProxy(t, r)
					timeout := 300 * time.Millisecond // much less than the play lasts
					sites.Add(historianOn(t, store.New(p.Pool(t, 8), store.Options{Lease: time.Second, Timeout: timeout})))
					p.Inject(func(redistest.Command) redistest.Fault {
						if fault != redistest.Pass && rand.IntN(200) == 0 {
							struck.Add(1)
							return fault
						}
						return redistest.Pass
					})
				}
				if name == "locks are deleted" {
					defer deleteLocks(t, r)()
				}
				visitHistorians(t, &sites, with != "", clients)
			})
		}
	}
}

// deleteLocks deletes all locks at any moment, until stop is called.
func deleteLocks(t *testing.T, r *redistest.Server) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(time.Duration(rand.IntN(100)) * time.Millisecond):
			}
			for _, key := range r.Keys(t) {
				if strings.HasSuffix(key, ".lock") {
					r.Do(t, "DEL", key)
				}
			}
		}
	}()
	return func() { close(end); <-ended }
}

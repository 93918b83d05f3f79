//go:build soak

package store

import (
	"runtime"
	"time"
)

// A size is what may not grow.
type size struct {
	goroutines int
	heap       uint64
}

func measure() size {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return size{runtime.NumGoroutine(), m.HeapAlloc}
}

// watch looks on until the soak is over, or has failed: no request may take for ever,
// and some must succeed. It returns the size after a tenth of all, while all workers
// run.
func (s *soak) watch(p *plague) (warm size) {
	begun := time.Now()
	said, moved, before := begun, begun, int64(0)
	for !s.t.Failed() {
		time.Sleep(time.Second)
		now, done := time.Now(), s.tally.operations.Load()
		if done > before {
			moved, before = now, done
		}
		if now.Sub(moved) > soakPatience {
			s.stuck("nothing has succeeded for a while")
		}
		for id := range s.began {
			if at := s.began[id].Load(); at > 0 && now.Sub(time.UnixMilli(at)) > soakPatience {
				s.stuck("a request does not end")
			}
		}
		if now.Sub(said) >= 30*time.Second {
			said = now
			s.t.Logf("%v: %s; faults: %s", now.Sub(begun).Round(time.Second), s.tally.short(), p)
		}
		if lost := s.tally.lost.Load(); done > 10_000 && lost > done/50 {
			s.t.Errorf("%d locks were lost: the fence keeps the data right, but hardly anybody is alone", lost)
		}
		p.forget()
		share := now.Sub(begun).Seconds() / soakFor.Seconds()
		if *soakOperations > 0 {
			share = float64(done) / float64(*soakOperations)
		}
		if share >= 1 {
			break
		}
		if warm.heap == 0 && share > 0.1 {
			warm = measure()
		}
	}
	return warm
}

// stuck fails the soak, and tells what all goroutines do.
func (s *soak) stuck(what string) {
	stacks := make([]byte, 1<<20)
	s.t.Fatalf("%s\n%s", what, stacks[:runtime.Stack(stacks, true)])
}

package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// Requests of two processes for one session run one after another, even if connections break all the time. No
// confirmed write is lost, and none is done twice. A request may only fail if Redis seems to be unavailable.
func excludes(s *site) {
	const requests, rounds = 8, 10
	s.create(s.process(patient), "first")
	var mu sync.Mutex
	answered := make(map[string]bool)
	var all sync.WaitGroup
	for i := range 4 {
		st, p := s.tapped(patient)
		if n := 0; i < 2 {
			p.Inject(func(c redistest.Command) redistest.Fault {
				if n++; isStores(c) && n%5 == 0 {
					return []redistest.Fault{redistest.DropReply, redistest.DropCommand, redistest.CutReply}[n/5%3]
				}
				return redistest.Pass
			})
		}
		for j := range requests {
			all.Go(func() {
				for k := range rounds {
					token := fmt.Sprintf("%d.%d.%d", i, j, k)
					h, _, err := st.Take(s.Context(), theID, records.Terms{LockWait: time.Minute})
					if err == nil {
						err = h.Save(s.Context(), fmt.Appendf(nil, "%s %s", h.Record.Data, token))
					}
					if err != nil && (i >= 2 || !errors.Is(err, store.ErrUnavailable)) {
						s.Errorf("%s: %v", token, err)
					}
					mu.Lock()
					answered[token] = err == nil
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	r, err := s.process(patient).Load(s.Context(), theID, records.Terms{})
	if err != nil {
		s.Fatal(err)
	}
	seen := make(map[string]int)
	for token := range strings.FieldsSeq(string(r.Data)) {
		if seen[token]++; seen[token] > 1 {
			s.Errorf("%s was written %d times", token, seen[token])
		}
	}
	for token, ok := range answered {
		if ok && seen[token] == 0 {
			s.Errorf("%s was confirmed, but is not stored", token)
		}
	}
	s.wantFree()
}

// A process that waits for another gets the session soon after its release, since it is notified. The lease is
// longer than the test may take.
func waitsForOtherProcess(s *site) {
	a, b := s.process(patient), s.process(patient)
	s.create(a, "0")
	for i := range 5 {
		h := s.take(a)
		taken := make(chan *records.Hold, 1)
		go func() {
			next, _, err := b.Take(s.Context(), theID, records.Terms{LockWait: time.Minute})
			if err != nil {
				s.Error(err)
			}
			taken <- next
		}()
		s.eventually("the other one waits", func() bool { return s.redis.Exists(s, lock+".queue") })
		s.save(h, fmt.Sprint(i))
		given := time.Now()
		next := <-taken
		if next == nil {
			return
		}
		if took := time.Since(given); took > patient.Lease/2 {
			s.Errorf("the turns took %v", took)
		}
		if got := string(next.Record.Data); got != fmt.Sprint(i) {
			s.Errorf("the next holder read %s, want %d", got, i)
		}
		next.Release(s.Context())
	}
	s.wantFree()
}

package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// write appends a token to the session, as an answered request does.
func (s *site) write(st *store.Store, token string) error {
	h, err := st.Take(s.Context(), theID, store.Terms{LockWait: time.Minute})
	if err != nil {
		return err
	}
	return h.Save(s.Context(), fmt.Appendf(nil, "%s %s", h.Record.Data, token))
}

// compete has several requests of each process write at once, round after round. It returns
// the tokens whose Save succeeded. Only a Redis that seems to be away may make one fail.
func (s *site) compete(stores []*store.Store, requests, rounds int) (answered []string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, st := range stores {
		for j := range requests {
			all.Go(func() {
				for k := range rounds {
					token := fmt.Sprintf("%d.%d.%d", i, j, k)
					err := s.write(st, token)
					if err != nil && !errors.Is(err, store.ErrUnavailable) {
						s.Errorf("%s: %v", token, err)
					}
					if err == nil {
						mu.Lock()
						answered = append(answered, token)
						mu.Unlock()
					}
				}
			})
		}
	}
	all.Wait()
	return answered
}

// wantWrites checks that each of the tokens was written once, and none of them twice.
func (s *site) wantWrites(answered []string) (tokens []string) {
	s.Helper()
	r, err := s.process(patient).Load(s.Context(), theID, store.Terms{})
	if err != nil {
		s.Fatal(err)
	}
	tokens = strings.Fields(string(r.Data))[1:] // the first is that of create
	seen := make(map[string]int)
	for _, token := range tokens {
		if seen[token]++; seen[token] > 1 {
			s.Errorf("%s was written %d times", token, seen[token])
		}
	}
	for _, token := range answered {
		if seen[token] == 0 {
			s.Errorf("%s was answered, and is not stored", token)
		}
	}
	return tokens
}

// Requests of two processes for one session run one after another, and nothing is lost.
func excludes(s *site) {
	const requests, rounds = 12, 10
	stores := []*store.Store{s.process(patient), s.process(patient)}
	s.create(stores[0], "first")
	answered := s.compete(stores, requests, rounds)
	if n := len(s.wantWrites(answered)); n != len(answered) || n != 2*requests*rounds {
		s.Errorf("%d of %d requests were answered, and %d are stored", len(answered), 2*requests*rounds, n)
	}
	s.wantFree()
}

// The same where connections break all the time.
func excludesOnBadNetwork(s *site) {
	const requests, rounds = 4, 10
	var stores []*store.Store
	for range 2 {
		st, p := s.tapped(patient)
		n := 0
		p.Inject(func(c redistest.Command) redistest.Fault {
			if n++; isStores(c) && n%5 == 0 {
				return []redistest.Fault{redistest.DropReply, redistest.DropCommand, redistest.CutReply}[n/5%3]
			}
			return redistest.Pass
		})
		stores = append(stores, st)
	}
	s.create(s.process(patient), "first")
	answered := s.compete(stores, requests, rounds)
	if len(answered) < requests*rounds {
		s.Errorf("only %d of %d requests were answered", len(answered), 2*requests*rounds)
	}
	s.wantWrites(answered)
}

// A process that waits for another gets the session soon after it is given back: it is
// notified. Its lease would last for longer than the test may.
func waitsForOtherProcess(s *site) {
	a, b := s.process(patient), s.process(patient)
	s.create(a, "0")
	for i := range 5 {
		h := s.take(a)
		taken := make(chan *store.Hold)
		go func() {
			next, err := b.Take(s.Context(), theID, store.Terms{LockWait: time.Minute})
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
		if took := time.Since(given); took > patient.Lease/4 {
			s.Errorf("it took %v", took)
		}
		if got := string(next.Record.Data); got != fmt.Sprint(i) {
			s.Errorf("the next one read %s, want %d", got, i)
		}
		next.Release(s.Context())
	}
	s.wantFree()
}

// No wait is longer than LockWait, no more than MaxWaiters wait in a process, and a request
// that goes away waits no longer.
func waitIsBounded(s *site) {
	a, b := s.process(patient), s.process(patient)
	s.create(a, "0")
	h := s.take(a)
	for name, st := range map[string]*store.Store{"this process": a, "another process": b} {
		_, err := st.Take(s.Context(), theID, store.Terms{LockWait: 50 * time.Millisecond})
		s.wantError("Take in "+name, err, store.ErrTimeout)
	}
	const waiters = 3
	came := make(chan error, waiters+1)
	for range waiters + 1 {
		go func() {
			next, err := a.Take(s.Context(), theID, store.Terms{LockWait: time.Minute, MaxWaiters: waiters})
			if err == nil {
				next.Release(s.Context())
			}
			came <- err
		}()
	}
	s.wantError("one too many", <-came, store.ErrTooManyWaiters)
	h.Release(s.Context())
	for range waiters {
		if err := <-came; err != nil {
			s.Error(err)
		}
	}
	s.wantFree()
}

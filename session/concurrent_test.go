package session_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

func TestGoroutinesOfOneRequestMayShareItsSession(t *testing.T) {
	t.Parallel()
	const workers, rounds = 4, 100
	var s session.Session
	s.Set("shared", []int{0, 0})
	var wg sync.WaitGroup
	each := func(do func(i int)) {
		wg.Go(func() {
			for i := range rounds {
				do(i)
			}
		})
	}
	for w := range workers {
		own := fmt.Sprint("own", w)
		each(func(i int) {
			s.Set(own, i)
			s.Set("shared", []int{w, i})
			s.Set(own+"gone", i)
			if got, ok := session.Pop[int](&s, own+"gone"); !ok || got != i {
				t.Errorf("Pop(%s) = %d, %v, want %d", own+"gone", got, ok, i)
			}
			if got, ok := session.Get[int](&s, own); !ok || got != i {
				t.Errorf("Get(%s) = %d, %v, want %d", own, got, ok, i)
			}
		})
	}
	// Each reader calls one method only: nothing else orders it after a writer.
	each(func(int) {
		if got, ok := session.Get[[]int](&s, "shared"); !ok || len(got) != 2 {
			t.Errorf("Get = %v, %v", got, ok)
		}
	})
	each(func(int) {
		if got := keys(&s); !slices.IsSorted(got) || !slices.Contains(got, "shared") {
			t.Errorf("Keys = %q", got)
		}
	})
	each(func(int) { s.Len() })
	wg.Wait()
	if s.Len() != 1+workers {
		t.Errorf("the keys are %q", keys(&s))
	}
}

// However a Set and the Seal race, the value is either stored or reported.
func TestASetThatRacesTheSealIsNeverLostInSilence(t *testing.T) {
	t.Parallel()
	const workers, rounds = 8, 50
	var mu sync.Mutex
	late := map[string]bool{}
	s := openWith(t, keep.Config{Keeper: keeper{late: func(_, key, _ string) {
		mu.Lock()
		defer mu.Unlock()
		late[key] = true
	}}})
	var wg sync.WaitGroup
	half := make(chan struct{}) // closed when the first worker is half way
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				if w == 0 && i == rounds/2 {
					close(half)
				}
				s.Set(fmt.Sprint(w, "-", i), i)
			}
		})
	}
	<-half
	change := seal(t, s)
	wg.Wait()

	stored := open(t, string(change.Data()))
	for key := range stored.Keys() {
		if late[key] {
			t.Errorf("%s is both stored and reported as late", key)
		}
	}
	if got := stored.Len() + len(late); got != workers*rounds {
		t.Errorf("%d stored + %d late = %d of %d", stored.Len(), len(late), got, workers*rounds)
	}
}

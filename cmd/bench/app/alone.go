package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Alone says how to use a lock without sessions: a number of goroutines lock one key, hold it, and release
// it, for some time.
type Alone struct {
	Key        string
	Goroutines int
	Hold, For  time.Duration
}

// Waits are how long the goroutines waited.
type Waits struct {
	Milliseconds []float64 // for each lock that was requested in time
	Acquired     int       // locks acquired in time
}

func serveAlone(w http.ResponseWriter, r *http.Request, lock lockFunc) {
	var a Alone
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	waits, err := a.run(r.Context(), lock)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	reply(w, waits)
}

// run counts the whole wait of a goroutine that still waits when the time is up: a starving goroutine must be
// counted.
func (a Alone) run(ctx context.Context, lock lockFunc) (Waits, error) {
	var (
		group  sync.WaitGroup
		mu     sync.Mutex // guards the fields below
		all    Waits
		failed error
	)
	end := time.Now().Add(a.For)
	for range a.Goroutines {
		group.Go(func() {
			one, err := a.loop(ctx, lock, end)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			all.Milliseconds = append(all.Milliseconds, one.Milliseconds...)
			all.Acquired += one.Acquired
		})
	}
	group.Wait()
	return all, failed
}

// loop is one goroutine.
func (a Alone) loop(ctx context.Context, lock lockFunc, end time.Time) (w Waits, err error) {
	for time.Now().Before(end) {
		began := time.Now()
		unlock, err := lock(ctx, a.Key)
		if err != nil {
			return w, err
		}
		taken := time.Now()
		w.Milliseconds = append(w.Milliseconds, float64(taken.Sub(began))/float64(time.Millisecond))
		if taken.Before(end) {
			w.Acquired++
		}
		time.Sleep(a.Hold)
		if err := unlock(); err != nil {
			return w, err
		}
	}
	return w, nil
}

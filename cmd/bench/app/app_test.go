package app

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestAlone(t *testing.T) {
	var mu sync.Mutex
	held := 0 // guarded by mu
	lock := func(_ context.Context, key string) (func() error, error) {
		if key != "k" {
			t.Errorf("the key is %q", key)
		}
		mu.Lock()
		held++
		return func() error {
			mu.Unlock()
			return nil
		}, nil
	}
	a := Alone{Key: "k", Goroutines: 4, Hold: time.Millisecond, For: 50 * time.Millisecond}
	w, err := a.run(t.Context(), lock)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Milliseconds) != held {
		t.Errorf("%d waits, but the lock was held %d times", len(w.Milliseconds), held)
	}
	if late := held - w.Acquired; w.Acquired == 0 || late < 0 || late > a.Goroutines {
		t.Errorf("%d of %d were in time", w.Acquired, held)
	}
}

func TestAloneFails(t *testing.T) {
	broken := errors.New("no lock today")
	lock := func(context.Context, string) (func() error, error) { return nil, broken }
	if _, err := (Alone{Goroutines: 2, For: time.Second}).run(t.Context(), lock); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}

func TestMainRefuses(t *testing.T) {
	for _, config := range []string{"", "{", `{"Peer":"other"}`} {
		if err := Main(config, nil, nil); err == nil {
			t.Errorf("%q: no error", config)
		}
	}
}

// TestFloorFindsOne has a visitor whose first requests are concurrent.
func TestFloorFindsOne(t *testing.T) {
	f := floor{visitors: make(map[string]*memory)}
	var found [64]*memory
	var group sync.WaitGroup
	for i := range found {
		group.Go(func() { found[i] = f.find("session=new") })
	}
	group.Wait()
	for i, m := range found {
		if m != found[0] {
			t.Fatalf("requests 0 and %d count in different places", i)
		}
	}
}

// TestProfile makes sure that a small session is as small as the tables say.
func TestProfile(t *testing.T) {
	text, err := json.Marshal(profile)
	if err != nil || len(text) != 100 || len(profile) != 5 {
		t.Errorf("%d values have %d bytes, error %v: it must be 5 and 100", len(profile), len(text), err)
	}
}

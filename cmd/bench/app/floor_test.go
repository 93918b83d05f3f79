package app

import (
	"encoding/json"
	"sync"
	"testing"
)

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

package faults

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// The address leads to another host from now on. The old host is silent, and connections
// to it stay open, as if it had been unplugged. Requests that come one after another reach
// the new host after a single exchange without an answer, no matter how many old
// connections there are: all of them are given up.
func TestAddressMoves(t *testing.T) {
	t.Parallel()
	r := noted(t, "the address leads elsewhere, the old host is silent", "P8: back after one time-out")
	const timeout = 500 * time.Millisecond
	master := redistest.Real(t, "--repl-diskless-sync", "no")
	replica := rig.Replica(t, master.Addr)
	address := rig.NewAddress(t, master.Addr)
	st, err := store.Open(address.URL, store.Options{Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	ctx := t.Context()
	if err := st.Create(ctx, "id", []byte("data"), store.Terms{}); err != nil {
		t.Fatal(err)
	}
	rig.AwaitAcks(t, master, 1)

	// First, as many connections as there can be: the second is made for what comes while the
	// first is stuck.
	master.Pause(t)
	var all sync.WaitGroup
	eventually(t, timeout/2, "there are two connections", func() bool {
		all.Go(func() {
			if _, err := st.Load(ctx, "id", store.Terms{}); err != nil {
				t.Error(err)
			}
		})
		return address.Connections() == 2
	})
	master.Resume(t)
	all.Wait()
	old := address.Connections()

	master.Pause(t)
	rig.Promote(t, replica)
	address.Lead(replica.Addr)
	moved := time.Now()
	refused := 0
	eventually(t, 20*timeout, "the session is found", func() bool {
		found, err := st.Load(ctx, "id", store.Terms{})
		if err != nil {
			refused++
		}
		return err == nil && string(found.Data) == "data"
	})
	r.recovered = time.Since(moved)
	r.seen = fmt.Sprintf("%d of the requests refused; %d old connections", refused, old)
	if refused == 0 {
		t.Error("the old host has answered")
	}
	if r.recovered > timeout*5/4+timeout/2 {
		t.Errorf("it took %v, more than a time-out of %v and a quarter", r.recovered, timeout)
	}
}

package store_test

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// P12: a session with timeouts of its own does not run out either while somebody holds it, for
// longer than these are. When it is given back, they count. That time passes is tested here.
func TestAHeldSessionWithTimesOfItsOwnDoesNotRunOut(t *testing.T) {
	t.Parallel()
	const short, hold = 500 * time.Millisecond, 1500 * time.Millisecond
	terms := store.Terms{TTL: time.Hour, GuestTTL: short, LockWait: time.Minute}
	for name, own := range map[string]func() *store.Times{
		"a guest":    func() *store.Times { return &store.Times{Idle: short} },
		"remembered": func() *store.Times { return &store.Times{Until: time.Now().Add(short)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLock(t, func(t *testing.T, r *redistest.Server, process func(time.Duration) *store.Store) {
				st := process(3 * time.Second)
				record := store.Record{Data: []byte("0"), Created: time.Now(), Own: own()}
				if err := st.CreateRecord(t.Context(), theID, record, terms); err != nil {
					t.Fatal(err)
				}
				h := take(t, st, terms)
				time.Sleep(hold)
				wantData(t, process(3*time.Second), "0")
				save(t, h, "1")
				runsOut(t, r, st, terms)
			})
		})
	}
}

// P12: a job keeps a session in use although it does not prolong it, whatever idle timeout that has.
func TestASessionThatAJobHasDoesNotRunOut(t *testing.T) {
	t.Parallel()
	const short, hold = 500 * time.Millisecond, 1500 * time.Millisecond
	terms := store.Terms{TTL: short, LockWait: time.Minute, Quiet: true}
	for name, own := range map[string]*store.Times{
		"a guest of a process with longer timeouts": {Idle: time.Hour},
		"a guest":           {Idle: short / 5},
		"any other session": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLock(t, func(t *testing.T, r *redistest.Server, process func(time.Duration) *store.Store) {
				st := process(3 * time.Second)
				record := store.Record{Data: []byte("0"), Created: time.Now(), Own: own}
				if err := st.CreateRecord(t.Context(), theID, record, terms); err != nil {
					t.Fatal(err)
				}
				r.Do(t, "PEXPIRE", theRecord, short.Milliseconds())
				h := take(t, st, terms)
				time.Sleep(hold)
				save(t, h, "1")
				wantData(t, process(3*time.Second), "1")
			})
		})
	}
}

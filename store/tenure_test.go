package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// While the first commit is under way, all who wait have their turn, each on what
// the one before has left. They read nothing, and share the second commit.
func TestGroupCommit(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		const crowd = 20
		first := take(t, d.st)
		waiting := guests(t, d.st, crowd, Terms{})
		letGo := d.holdBack(t)
		endings := []*ending{saving(t, first, "1")}
		for i, g := range waiting {
			h := g.holds(t, fmt.Sprint(i+1))
			if i == crowd-1 {
				letGo() // nobody is left to hand it to, so its end waits for the first commit
			}
			endings = append(endings, saving(t, h, fmt.Sprint(i+2)))
		}
		for _, e := range endings {
			if err := e.wait(); err != nil {
				t.Error(err)
			}
		}
		d.wantQuiet(t, fmt.Sprint(crowd+1))
		if takes, commits := d.takes(), d.count(commitScript); takes != 1 || commits > 3 {
			t.Errorf("%d requests cost %d takes and %d commits", crowd+1, takes, commits)
		}
	})
}

// The next request starts while the commit before it is under way. Neither of them
// is answered until its own write is stored.
func TestNobodyIsAnsweredBeforeTheCommit(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, h *Hold) error{
		"Save":    func(t *testing.T, h *Hold) error { return h.Save(t.Context(), []byte("2")) },
		"Touch":   func(t *testing.T, h *Hold) error { return h.Touch(t.Context()) },
		"Destroy": func(t *testing.T, h *Hold) error { return h.Destroy(t.Context()) },
		"Renew":   func(t *testing.T, h *Hold) error { return h.Renew(t.Context(), newID, []byte("2")) },
	} {
		t.Run(name, func(t *testing.T) {
			eachDesk(t, patient, func(t *testing.T, d *desk) {
				first := take(t, d.st)
				waiting := guests(t, d.st, 2, Terms{})
				letGo := d.holdBack(t)
				one := saving(t, first, "1")
				h := waiting[0].holds(t, "1")
				two := begin(func() error { return end(t, h) })
				if name == "Save" || name == "Touch" { // it is handed on at once
					<-waiting[1].came
				}
				wantData(t, d.site, "0") // what others see
				one.wantPending(t)
				two.wantPending(t)
				letGo()
				if err := errors.Join(one.wait(), two.wait()); err != nil {
					t.Error(err)
				}
				<-waiting[1].came
				if last := waiting[1].hold; last != nil {
					last.Release(t.Context())
				} else {
					wantError(t, "who waited", waiting[1].err, ErrGone)
				}
			})
		})
	}
}

// A handler that panics, and one whose session is too large, leave no trace in what
// the next one gets, and do not harm those before them.
func TestReleaseLeavesNoTrace(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, h *Hold){
		"panic": func(t *testing.T, h *Hold) { h.Release(t.Context()) },
		"too large": func(t *testing.T, h *Hold) {
			large := []byte(strings.Repeat("x", DefaultMaxBytes))
			wantError(t, "Save", h.Save(t.Context(), large), ErrTooLarge)
		},
		"renewed to a known id": func(t *testing.T, h *Hold) {
			wantError(t, "Renew", h.Renew(t.Context(), newID, []byte("lost")), ErrCorrupt)
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachDesk(t, patient, func(t *testing.T, d *desk) {
				d.Do(t, "SET", newRecord, "another's")
				first := take(t, d.st)
				waiting := guests(t, d.st, 2, Terms{})
				letGo := d.holdBack(t)
				one := saving(t, first, "1")
				h, ended := waiting[0].holds(t, "1"), make(chan struct{})
				go func() {
					defer close(ended)
					end(t, h)
				}()
				letGo() // what end sends comes behind the commit, on the same connection
				<-ended
				last := waiting[1].holds(t, "1")
				if err := one.wait(); err != nil {
					t.Error(err)
				}
				save(t, last, "2")
				d.wantQuiet(t, "2")
			})
		})
	}
}

// What a hold has read does not change, whatever those do that come after it.
func TestHoldsShareNothingThatChanges(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		var mu sync.Mutex
		seen := make(map[*Hold]string)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				h, err := d.st.Take(t.Context(), theID, Terms{LockWait: patient.Lease})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[h] = string(h.Record.Data)
				mu.Unlock()
				if err := h.Save(t.Context(), fmt.Append(nil, number(t, h.Record)+1)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for h, want := range seen {
			if got := string(h.Record.Data); got != want {
				t.Errorf("a hold read %s, and now it has %s", want, got)
			}
		}
	})
}

// In Redis, the lock says who holds the session now, whoever made the commit.
func TestLockNamesThePresentHolder(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		first, err := d.st.Take(t.Context(), theID, Terms{Label: "first"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			label := fmt.Sprint("guest-", i)
			waiting := guests(t, d.st, 1, Terms{Label: label})
			save(t, first, fmt.Sprint(i+1))
			first = waiting[0].holds(t, fmt.Sprint(i+1))
			if lock, _ := d.Get(t, theLock); !strings.HasPrefix(lock, first.stamp) || !strings.HasSuffix(lock, " "+label) {
				t.Errorf("the lock is %q, the holder %s with stamp %s", lock, label, first.stamp)
			}
			_, err := d.process(t).Take(t.Context(), theID, Terms{LockWait: time.Millisecond})
			if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), label) {
				t.Errorf("who waits is told %v, not of %s", err, label)
			}
		}
		first.Release(t.Context())
	})
}

// Two processes in which a crowd waits take turns. None has many in a row while the
// other waits.
func TestProcessesTakeTurns(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		const crowd = 250
		terms := Terms{LockWait: patient.Lease, MaxWaiters: crowd}
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		gate := take(t, d.process(t))
		for name, st := range []*Store{d.st, d.process(t)} {
			for range crowd {
				all.Go(func() {
					h, err := st.Take(t.Context(), theID, terms)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					order = append(order, name)
					mu.Unlock()
					time.Sleep(200 * time.Microsecond) // the work
					if err := h.Save(t.Context(), fmt.Append(nil, number(t, h.Record)+1)); err != nil {
						t.Error(err)
					}
				})
			}
		}
		eventually(t, "both are in the queue", func() bool {
			places, _ := d.Get(t, theQueue)
			return strings.Count(places, " ") == 2
		})
		gate.Release(t.Context())
		all.Wait()
		wantData(t, d.site, fmt.Sprint(2*crowd))
		turns := runsOf(order)
		// Whether others wait is known when the lock is taken, and from each commit. At
		// the end there may be nobody else.
		if longest := slices.Max(turns[:len(turns)-1]); turns[0] > 33 || longest > 120 {
			t.Errorf("%d requests were these turns: %v", 2*crowd, turns)
		}
	})
}

// runsOf returns the lengths of the runs of equal numbers.
func runsOf(order []int) (lengths []int) {
	for i, n := range order {
		if i == 0 || n != order[i-1] {
			lengths = append(lengths, 0)
		}
		lengths[len(lengths)-1]++
	}
	return lengths
}

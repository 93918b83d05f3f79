package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Every commit that a process ever sent may reach Redis once more, at any later time:
// while the tenure goes on, while another process has the session, while nobody has.
// It never changes the record or the lock.
func TestLateCommitsChangeNothing(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"small": "", "large": large("")} {
		t.Run(name, func(t *testing.T) {
			eachDesk(t, patient, func(t *testing.T, d *desk) { lateCommitsChangeNothing(t, d, more) })
		})
	}
}

func lateCommitsChangeNothing(t *testing.T, d *desk, more string) {
	first := take(t, d.st)
	waiting := guests(t, d.st, 6, Terms{})
	for i, end := range []func(h *Hold) error{
		func(h *Hold) error { return h.Save(t.Context(), []byte("1"+more)) },
		func(h *Hold) error { return h.Touch(t.Context()) },
		func(h *Hold) error { return h.Save(t.Context(), []byte("3"+more)) },
		func(h *Hold) error { h.Release(t.Context()); return nil },
		func(h *Hold) error { return h.Save(t.Context(), []byte("5"+more)) },
		func(h *Hold) error { return h.Save(t.Context(), []byte("6"+more)) },
	} {
		if err := end(first); err != nil {
			t.Errorf("hold %d: %v", i, err)
		}
		d.repeatCommits(t, fmt.Sprint("after hold ", i))
		<-waiting[i].came
		if first = waiting[i].hold; first == nil {
			t.Fatal(waiting[i].err)
		}
	}
	save(t, first, "7"+more)
	d.repeatCommits(t, "while nobody has it")

	other := take(t, d.process(t))
	d.repeatCommits(t, "while another has it")
	save(t, other, "rightful"+more)
	d.repeatCommits(t, "after another wrote")
	d.wantQuiet(t, "rightful"+more)

	h := take(t, d.st)
	d.repeatCommits(t, "in the next tenure")
	if err := h.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	d.repeatCommits(t, "after the end")
	wantGone(t, d.site, d.st)
}

// repeatCommits sends all commits so far once more, with the records that were staged for them:
// each record before its commit, and then after it.
func (d *desk) repeatCommits(t *testing.T, when string) {
	t.Helper()
	record, _ := d.Get(t, theRecord)
	lock, _ := d.Get(t, theLock)
	late := slices.DeleteFunc(d.proxy.Commands(), func(cmd redistest.Command) bool {
		return !runs(cmd, commitScript) && !strings.HasPrefix(strings.Join(cmd.Args, " "), theRecord+".new.")
	})
	backwards := slices.Clone(late)
	slices.Reverse(backwards)
	for i, cmd := range append(late, backwards...) {
		args := make([]any, len(cmd.Args))
		for i, arg := range cmd.Args {
			args[i] = arg
		}
		d.Do(t, cmd.Name, args...)
		if now, _ := d.Get(t, theRecord); now != record {
			t.Errorf("%s, command %d again: the record was %s and is %s", when, i, record, now)
		}
		if now, _ := d.Get(t, theLock); now != lock {
			t.Errorf("%s, command %d again: the lock was %q and is %q", when, i, lock, now)
		}
	}
	stagedKeys(t, d.site)
}

// A commit of several requests is late by more than their patience: they were told
// that it failed, and the next one holds the session. It changes nothing then.
func TestLateGroupCommit(t *testing.T) {
	o := patient
	o.Timeout = shortly
	eachDesk(t, o, func(t *testing.T, d *desk) {
		first := take(t, d.st)
		waiting := guests(t, d.st, 2, Terms{})
		letGo := d.holdBack(t)
		one := saving(t, first, "1")
		two := saving(t, waiting[0].holds(t, "1"), "2")
		wantError(t, "Save", one.wait(), ErrUnavailable)
		wantError(t, "Save", two.wait(), ErrUnavailable)
		wantError(t, "Touch", waiting[1].holds(t, "2").Touch(t.Context()), ErrUnavailable)
		next := take(t, d.st) // those in line were sent away with them
		letGo()
		d.repeatCommits(t, "while the next one holds it")
		save(t, next, "3")
		d.wantQuiet(t, "3")
	})
}

// All connections break in the middle of a commit, for good and with all their
// repetitions. Whether Redis did the work or not, no answer lies.
func TestBrokenGroupCommit(t *testing.T) {
	for name, fault := range map[string]redistest.Fault{
		"the replies are lost":   redistest.DropReply,
		"the replies are cut":    redistest.CutReply,
		"the commands are lost":  redistest.DropCommand,
		"the replies never come": redistest.Hang,
	} {
		t.Run(name, func(t *testing.T) {
			o := patient
			o.Timeout = shortly
			eachDesk(t, o, func(t *testing.T, d *desk) {
				first := take(t, d.st)
				waiting := guests(t, d.st, 4, Terms{})
				d.proxy.Inject(func(cmd redistest.Command) redistest.Fault {
					if runs(cmd, commitScript) {
						return fault
					}
					return redistest.Pass
				})
				// They may come in any order: whoever loses the session as it comes
				// waits again. The fault is over when the last has come.
				endings := make(chan sum, len(waiting)+1)
				add := func(h *Hold) sum {
					n := number(t, h.Record) + 1
					return sum{n: n, err: h.Save(t.Context(), fmt.Append(nil, n))}
				}
				go func() { endings <- add(first) }()
				for i, g := range waiting {
					go func() {
						<-g.came
						if i == len(waiting)-1 {
							d.proxy.Inject(nil)
						}
						if g.err != nil {
							endings <- sum{err: g.err}
						} else {
							endings <- add(g.hold)
						}
					}()
				}
				d.wantTrue(t, endings)
				eventually(t, "the session is free", func() bool { return !d.Exists(t, theLock) })
			})
		})
	}
}

// A sum is what came of adding one: the number that it was to be.
type sum struct {
	n   int
	err error
}

// wantTrue checks what all who added one were told: each success is a number of its
// own, and all of them are in what is stored.
func (d *desk) wantTrue(t *testing.T, endings <-chan sum) {
	t.Helper()
	told, last := make(map[int]bool), 0
	for range cap(endings) {
		switch e := <-endings; {
		case e.err == nil && told[e.n]:
			t.Errorf("%d was told twice", e.n)
		case e.err == nil:
			told[e.n], last = true, max(last, e.n)
		case mustBe(e.err, ErrUnavailable) != nil && mustBe(e.err, ErrLost) != nil:
			t.Error(e.err)
		}
	}
	stored, err := d.process(t).Load(t.Context(), theID, Terms{})
	if err != nil || number(t, stored) < last {
		t.Errorf("%q is stored, %v, but %d was told", stored.Data, err, last)
	}
}

package records

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Every commit that a process ever sent may be done once more, at any later time: during the tenure, while
// another process has the session, or while it is free. It never changes the record or the lock.
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
		first = waiting[i].hold
		if first == nil {
			t.Fatal(waiting[i].err)
		}
	}
	save(t, first, "7"+more)
	d.repeatCommits(t, "while nobody has it")

	other := take(t, process(t, d.Server))
	d.repeatCommits(t, "while another has it")
	save(t, other, "rightful"+more)
	d.repeatCommits(t, "after another wrote")
	d.wantQuiet(t, "rightful"+more)

	h := take(t, d.st)
	d.repeatCommits(t, "in the next tenure")
	must(t, h.Destroy(t.Context()))
	d.repeatCommits(t, "after the end")
	wantGone(t, d.Server, d.st)
}

// repeatCommits sends all earlier commits once more, and the records that were staged for them: each record
// before its commit, and again after it.
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
		again(t, d.Server, cmd)
		if now, _ := d.Get(t, theRecord); now != record {
			t.Errorf("%s, command %d again: the record was %s and is %s", when, i, record, now)
		}
		if now, _ := d.Get(t, theLock); now != lock {
			t.Errorf("%s, command %d again: the lock was %q and is %q", when, i, lock, now)
		}
	}
	stagedKeys(t, d.Server)
}

package lockertest

import (
	"fmt"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// A history is what was called on one lock, and when that began and ended.
type history struct {
	began time.Time

	mu         sync.Mutex // guards operations
	operations []porcupine.Operation
}

// A step is an operation on the lock that has succeeded.
type step string

const (
	take    step = "take"
	release step = "release"
)

type event struct {
	caller int
	step   step
}

// begin notes that an operation begins. It counts once ended is called, which
// notes that it has ended.
func (h *history) begin(caller int, s step) (ended func()) {
	call := time.Since(h.began)
	return func() {
		end := time.Since(h.began)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.operations = append(h.operations, porcupine.Operation{
			ClientId: caller,
			Input:    event{caller, s},
			Call:     int64(call),
			Return:   int64(end),
		})
	}
}

const nobody = -1

// model is what a lock is to do, one operation after the other. Its state is who
// has the lock.
var model = porcupine.Model{
	Init: func() any { return nobody },
	Step: func(state, input, _ any) (bool, any) {
		holder, e := state.(int), input.(event)
		if e.step == take {
			return holder == nobody, e.caller
		}
		return holder == e.caller, nobody
	},
	DescribeOperation: func(input, _ any) string {
		e := input.(event)
		return fmt.Sprintf("%s by %d", e.step, e.caller)
	},
}

// judge looks for an order of the operations, which agrees with when each began
// and ended, in which all of them are right.
func (h *history) judge(c *check) {
	c.Helper()
	verdict, info := porcupine.CheckOperationsVerbose(model, h.operations, patience)
	if verdict == porcupine.Ok {
		return
	}
	path := c.ArtifactDir() + "/history.html"
	if err := porcupine.VisualizePath(model, info, path); err != nil {
		c.Error(err)
	}
	c.Errorf("the history is %s: drawn in %s (kept with -artifacts)", verdict, path)
}

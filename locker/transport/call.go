package transport

import (
	"slices"
	"sync/atomic"
	"time"

	"bytes"
)

// A call is one Do on its way.
type call struct {
	commands  []Command
	deadline  time.Time       // when its link breaks
	hurried   bool            // its caller leaves sooner, at the time of leaves
	leaves    time.Time       //
	cancelled <-chan struct{} // nil once the caller has noticed

	link  *link
	since time.Time   // when the link got it
	begun bool        // guarded by the writer's role
	sent  atomic.Bool // it is wholly with the connection, and its arguments are not needed

	done    bool // the rest is final
	replies []any
	err     error

	waiting bool // the caller waits for wake
	wake    chan struct{}
}

func (c Command) valid() bool {
	if len(c) == 0 {
		return false
	}
	_, ok := c[0].(string)
	return ok
}

// hurry is for a caller that leaves before the deadline. It may do so in the middle
// of a write, and its commands are its own then.
func (x *call) hurry(leaves time.Time) {
	x.hurried, x.leaves = true, leaves
	x.commands = slices.Clone(x.commands)
	for i, command := range x.commands {
		command = slices.Clone(command)
		for j, arg := range command {
			if b, ok := arg.([]byte); ok {
				command[j] = bytes.Clone(b)
			}
		}
		x.commands[i] = command
	}
}

// finish ends x.
func (x *call) finish(err error) {
	if x.done {
		return // the caller has left
	}
	x.done, x.err = true, err
	if err != nil {
		x.replies = nil
	}
	x.signal()
}

// signal makes the caller look again, if it waits.
func (x *call) signal() {
	if x.waiting {
		select {
		case x.wake <- struct{}{}:
		default: // it will
		}
	}
}

// size is about how many bytes x takes on the wire.
func (x *call) size() int {
	size := 0
	for _, command := range x.commands {
		for _, arg := range command {
			size += 16
			switch arg := arg.(type) {
			case string:
				size += len(arg)
			case []byte:
				size += len(arg)
			}
		}
	}
	return size
}

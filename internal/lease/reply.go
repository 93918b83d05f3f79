package lease

import (
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

// What the scripts of a lock answer, as the first value of their replies.
const (
	stateDone    = 1
	stateHeld    = 0  // by another: its token and the time left in ms may follow
	stateExpired = -1 // nobody has the lock
	stateForeign = -2 // the key holds something else
)

// Taken reads the reply to a Take.
func Taken(reply scripting.Reply, err error) (Attempt, error) {
	switch err := Verdict(reply, err); err {
	case nil:
		return Attempt{Taken: true}, nil
	case ErrLost:
		return Held(reply)
	case ErrExpired:
		return Attempt{}, Unexpected(reply)
	default:
		return Attempt{}, err
	}
}

// Held reads what a script answers about a lock that another has: behind the first
// value its token and, where they are known, the time left in ms and the result of
// joining the queue.
func Held(reply scripting.Reply) (Attempt, error) {
	holder, ok1 := reply.TextAt(1)
	left, ok2 := reply.IntAt(2)
	joined, ok3 := reply.IntAt(3)
	if n := reply.Len(); !ok1 || n > 2 && !ok2 || n > 3 && !ok3 {
		return Attempt{}, Unexpected(reply)
	}
	found := Attempt{Holder: holder, Left: time.Duration(left) * time.Millisecond, Queued: joined > 0, Joined: joined > 1}
	if left < 0 {
		found.Left = forever
	}
	if isPlace(holder) { // it is being given to another process
		found.Holder = ""
	}
	return found, nil
}

// Verdict reads the reply to an Extend or a Release.
func Verdict(reply scripting.Reply, err error) error {
	if err != nil {
		return err
	}
	switch state, ok := reply.IntAt(0); {
	case !ok:
		return Unexpected(reply)
	case state == stateDone:
		return nil
	case state == stateHeld:
		return ErrLost
	case state == stateExpired:
		return ErrExpired
	case state == stateForeign:
		return ErrForeign
	}
	return Unexpected(reply)
}

// Unexpected is the error of a reply that no script of ours gives. Since the reply may hold a
// secret, it is not part of the error.
func Unexpected(reply scripting.Reply) error {
	return fmt.Errorf("%w: unexpected reply of a script, with %d values", ErrUnavailable, reply.Len())
}

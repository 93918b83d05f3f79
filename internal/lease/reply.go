package lease

import (
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

// The first value of the replies of a lock's scripts.
const (
	stateDone    = 1
	stateLost    = 0 // another has the lock: its token and the time left in ms may follow
	stateExpired = -1
	stateForeign = -2
)

// ReadReply reads the reply to an Extend, Release, Pass or Quit.
func ReadReply(reply scripting.Reply, err error) error {
	if err != nil {
		return err
	}
	return ReadReplyAt(reply, 0)
}

// ReadReplyAt is ReadReply if the state is value i of the reply.
func ReadReplyAt(reply scripting.Reply, i int) error {
	state, ok := reply.IntAt(i)
	switch {
	case !ok:
	case state == stateDone:
		return nil
	case state == stateLost:
		token, known := reply.TextAt(i + 1)
		owner, ours := ParseToken(token)
		switch {
		case !known:
			return ErrLost
		case isPlace(token):
			return fmt.Errorf("%w: it is the turn of another process", ErrLost)
		case !ours:
			return fmt.Errorf("%w: its key has been overwritten", ErrLost)
		}
		return fmt.Errorf("%w: %s has it now", ErrLost, owner)
	case state == stateExpired:
		return ErrExpired
	case state == stateForeign:
		return ErrForeign
	}
	return Unexpected(reply)
}

// ReadTake reads the reply to a Take.
func ReadTake(reply scripting.Reply, err error) (Attempt, error) {
	if err != nil {
		return Attempt{}, err
	}
	switch state, ok := reply.IntAt(0); {
	case ok && state == stateDone:
		return Attempt{Taken: true}, nil
	case ok && state == stateLost:
		return ReadHolder(reply)
	case ok && state == stateForeign:
		return Attempt{}, ErrForeign
	default:
		return Attempt{}, Unexpected(reply)
	}
}

// ReadHolder reads the reply of a script that found the lock held by another token. Behind the first value come the
// token and, if they are known, the time left in ms and the result of joining the queue.
func ReadHolder(reply scripting.Reply) (Attempt, error) {
	value, ok1 := reply.TextAt(1)
	left, ok2 := reply.IntAt(2)
	joined, ok3 := reply.IntAt(3)
	if n := reply.Len(); !ok1 || n > 2 && !ok2 || n > 3 && !ok3 {
		return Attempt{}, Unexpected(reply)
	}
	found := HeldBy(value)
	found.Left, found.Queued, found.Joined = time.Duration(left)*time.Millisecond, joined > 0, joined > 1
	if left < 0 || left > forever.Milliseconds() { // another program may have set any expiry
		found.Left = forever
	}
	return found, nil
}

// HeldBy returns the outcome of a try that found the lock with this value.
func HeldBy(value string) Attempt {
	switch {
	case isPlace(value): // the lock is being given to another process
		value = ""
	case value == "":
		value = Unnamed
	}
	return Attempt{Holder: value}
}

// Unnamed is the Holder of a lock whose value is empty. That is no token, so the lock is foreign.
const Unnamed = " "

// Unexpected returns the error of a reply that no script of ours gives. The error does not contain the reply, which may
// hold a secret.
func Unexpected(reply scripting.Reply) error {
	return fmt.Errorf("%w: unexpected reply of a script, with %d values", ErrUnavailable, reply.Len())
}

package locker

import (
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// What the scripts answer, in the first value of their replies.
const (
	stateDone    = 1
	stateHeld    = 0  // by another: its token and the time left in ms may follow
	stateExpired = -1 // nobody has the lock
	stateForeign = -2 // the key holds something else
)

// attempt reads the reply to a Take.
func attempt(reply any, err error) (Attempt, error) {
	state, rest, err := stateOf(reply, err)
	switch {
	case err != nil:
		return Attempt{}, err
	case state == stateDone:
		return Attempt{Taken: true}, nil
	case state != stateHeld:
		return Attempt{}, unexpected(state)
	}
	return HeldBy(rest)
}

// HeldBy reads what a script answers about a lock that another has: its token and,
// if known, the time left in ms and what came of joining the queue.
func HeldBy(values []any) (Attempt, error) {
	var found Attempt
	var left, joined int64
	rest, err := redis.Scan(values, &found.Holder)
	if err == nil && len(rest) > 0 {
		rest, err = redis.Scan(rest, &left)
	}
	if err == nil && len(rest) > 0 {
		_, err = redis.Scan(rest, &joined)
	}
	if err != nil {
		return Attempt{}, fmt.Errorf("%w: reading the reply of a script: %w", ErrUnavailable, err)
	}
	if found.Left = time.Duration(left) * time.Millisecond; left < 0 {
		found.Left = forever
	}
	found.Queued, found.Joined = joined > 0, joined > 1
	if isPlace(found.Holder) { // it is being handed to another process
		found.Holder = ""
	}
	return found, nil
}

// verdict reads the reply to an Extend or a Release.
func verdict(reply any, err error) error {
	state, _, err := stateOf(reply, err)
	switch {
	case err != nil:
		return err
	case state == stateDone:
		return nil
	case state == stateHeld:
		return ErrLost
	case state == stateExpired:
		return ErrExpired
	default:
		return unexpected(state)
	}
}

// passed reads the reply to a Pass.
func passed(reply any, err error) (others bool, _ error) {
	if err := verdict(reply, err); err != nil {
		return false, err
	}
	_, rest, err := stateOf(reply, nil)
	if err == nil {
		_, err = redis.Scan(rest, &others)
	}
	if err != nil {
		return false, fmt.Errorf("%w: reading the reply of a script: %w", ErrUnavailable, err)
	}
	return others, nil
}

func stateOf(reply any, err error) (state int, rest []any, _ error) {
	if err != nil {
		return 0, nil, err
	}
	values, err := redis.Values(reply, nil)
	if err == nil {
		rest, err = redis.Scan(values, &state)
	}
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("%w: reading the reply of a script: %w", ErrUnavailable, err)
	case state == stateForeign:
		return 0, nil, ErrForeign
	default:
		return state, rest, nil
	}
}

func unexpected(state int) error {
	return fmt.Errorf("%w: a script answered %d", ErrUnavailable, state)
}

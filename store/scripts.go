package store

import (
	_ "embed"
	"fmt"

	"github.com/a2139e8d/latchkey/locker"
)

var (
	//go:embed take.lua
	takeText string
	//go:embed load.lua
	loadText string
	//go:embed commit.lua
	commitText string
	//go:embed create.lua
	createText string
	//go:embed replace.lua
	replaceText string
	//go:embed drop.lua
	dropText string

	takeScript    = locker.NewQueueScript(takeText)
	loadScript    = locker.NewScript(loadText)
	commitScript  = locker.NewQueueScript(commitText)
	createScript  = locker.NewScript(createText)
	replaceScript = locker.NewScript(replaceText)
	dropScript    = locker.NewScript(dropText)
	pingScript    = locker.NewScript(`redis.call('PING'); return 1`)
)

// What take.lua and load.lua say about a record, in their first value.
const (
	stateBusy      = 0 // another holds the lock; who, follows
	stateFound     = 1 // the record follows
	stateAbsent    = 2
	stateGone      = 3
	stateTooLarge  = 4 // the size follows
	stateWrongType = 5 // the key holds something that is not a string
)

// found reads the reply of load.lua: the record as it is stored, where it is a
// string of permitted size.
func found(reply any, err error) ([]byte, error) {
	state, rest, err := stateOf(reply, err)
	if err != nil {
		return nil, err
	}
	switch state {
	case stateFound:
		if text, ok := first[[]byte](rest); ok {
			return text, nil
		}
	case stateAbsent:
		return nil, ErrNotFound
	case stateGone:
		return nil, ErrGone
	case stateTooLarge:
		if size, ok := first[int64](rest); ok {
			return nil, fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, size)
		}
	case stateWrongType:
		return nil, fmt.Errorf("%w: its key holds another Redis type", ErrCorrupt)
	}
	return nil, unexpected(reply)
}

// taken reads the reply of take.lua. Without an error, either the lock was taken and
// this is the record, or another has it. others tells whether other processes wait,
// if that was asked.
func taken(reply any, err error) (text []byte, others bool, _ locker.Attempt, _ error) {
	state, rest, err := stateOf(reply, err)
	switch {
	case err != nil:
		return nil, false, locker.Attempt{}, err
	case state == stateBusy:
		held, err := locker.HeldBy(rest)
		return nil, false, held, err
	}
	text, err = found(reply, nil)
	if state == stateFound && len(rest) > 1 {
		n, ok := first[int64](rest[1:])
		if !ok {
			return nil, false, locker.Attempt{}, unexpected(reply)
		}
		others = n != 0
	}
	return text, others, locker.Attempt{Taken: err == nil || unusable(err)}, err
}

// committed reads the reply of commit.lua. others tells whether other processes
// wait.
func committed(reply any, err error) (others bool, _ error) {
	n, ok := reply.(int64)
	switch {
	case err != nil:
		return false, err
	case !ok, n < 0, n > 2:
		return false, unexpected(reply)
	case n == 0:
		return false, ErrLost
	}
	return n == 2, nil
}

func stateOf(reply any, err error) (state int64, rest []any, _ error) {
	if err != nil {
		return 0, nil, err
	}
	values, _ := reply.([]any)
	state, ok := first[int64](values)
	if !ok {
		return 0, nil, unexpected(reply)
	}
	return state, values[1:], nil
}

// first returns the first of some values, if it is a T.
func first[T any](values []any) (v T, ok bool) {
	if len(values) > 0 {
		v, ok = values[0].(T)
	}
	return v, ok
}

// unexpected is the error of a reply that no script gives. It may hold a secret, so
// only its type is told.
func unexpected(reply any) error {
	return fmt.Errorf("%w: unexpected reply of a script: a %T", ErrUnavailable, reply)
}

package store

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
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
	pingScript    = locker.NewScript(`return redis.call('PING')`)
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
	var text []byte
	var size int
	switch state {
	case stateFound:
		_, err = redis.Scan(rest, &text)
	case stateAbsent:
		err = ErrNotFound
	case stateGone:
		err = ErrGone
	case stateTooLarge:
		if _, err = redis.Scan(rest, &size); err == nil {
			return nil, fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, size)
		}
	case stateWrongType:
		err = fmt.Errorf("%w: its key holds another Redis type", ErrCorrupt)
	default:
		err = fmt.Errorf("%w: unexpected reply of a script: state %d", ErrUnavailable, state)
	}
	return text, unexpected(err)
}

// taken reads the reply of take.lua. Without an error, either the lock was taken and
// this is the record, or another has it. others tells whether other processes wait.
func taken(reply any, err error) (text []byte, others bool, _ locker.Attempt, _ error) {
	state, rest, err := stateOf(reply, err)
	if err == nil && state == stateBusy {
		held, err := locker.HeldBy(rest)
		return nil, false, held, err
	}
	if err == nil && state == stateFound && len(rest) > 1 {
		_, err = redis.Scan(rest[1:], &others)
		err = unexpected(err)
	}
	text, err = found(reply, err)
	return text, others, locker.Attempt{Taken: err == nil || unusable(err)}, err
}

// committed reads the reply of commit.lua. others tells whether other processes
// wait.
func committed(reply any, err error) (others bool, _ error) {
	state, rest, err := stateOf(reply, err)
	if err == nil && state == 0 {
		return false, ErrLost
	}
	if err == nil {
		_, err = redis.Scan(rest, &others)
	}
	return others, unexpected(err)
}

func stateOf(reply any, err error) (state int, rest []any, _ error) {
	if err != nil {
		return 0, nil, err
	}
	values, err := redis.Values(reply, nil)
	if err == nil {
		rest, err = redis.Scan(values, &state)
	}
	return state, rest, unexpected(err)
}

// unexpected makes an [ErrUnavailable] of an error that has no name here.
func unexpected(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{ErrNotFound, ErrGone, ErrTooLarge, ErrCorrupt, ErrUnavailable} {
		if errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: unexpected reply of a script: %w", ErrUnavailable, err)
}

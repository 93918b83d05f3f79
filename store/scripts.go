package store

import (
	_ "embed"
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
	//go:embed touch.lua
	touchText string
	//go:embed create.lua
	createText string
	//go:embed replace.lua
	replaceText string
	//go:embed drop.lua
	dropText string

	takeScript    = locker.NewScript(takeText)
	loadScript    = locker.NewScript(loadText)
	commitScript  = locker.NewScript(commitText)
	touchScript   = locker.NewScript(touchText)
	createScript  = locker.NewScript(createText)
	replaceScript = locker.NewScript(replaceText)
	dropScript    = locker.NewScript(dropText)
	pingScript    = locker.NewScript(`return redis.call('PING')`)
)

// What take.lua and load.lua say about a record, in their first value.
const (
	stateBusy      = 0 // another holds the lock; its token follows
	stateFound     = 1 // the record follows
	stateAbsent    = 2
	stateGone      = 3
	stateTooLarge  = 4 // the size follows
	stateWrongType = 5 // the key holds something that is not a string
)

// found reads the reply of take.lua or load.lua. text is the record as it is
// stored, where it is a string of permitted size; or, if busy, the holder's token:
// there is a record then, but another has the lock.
func found(reply any, err error) (text []byte, busy bool, _ error) {
	if err != nil {
		return nil, false, err
	}
	var state, size int
	values, err := redis.Values(reply, nil)
	if err == nil {
		values, err = redis.Scan(values, &state)
	}
	switch {
	case err != nil:
	case state == stateFound, state == stateBusy:
		_, err = redis.Scan(values, &text)
	case state == stateTooLarge:
		_, err = redis.Scan(values, &size)
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: unexpected reply of a script: %w", ErrUnavailable, err)
	}
	switch state {
	case stateFound, stateBusy:
		return text, state == stateBusy, nil
	case stateAbsent:
		return nil, false, ErrNotFound
	case stateGone:
		return nil, false, ErrGone
	case stateTooLarge:
		return nil, false, fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, size)
	case stateWrongType:
		return nil, false, fmt.Errorf("%w: its key holds another Redis type", ErrCorrupt)
	default:
		return nil, false, fmt.Errorf("%w: unexpected reply of a script: state %d", ErrUnavailable, state)
	}
}

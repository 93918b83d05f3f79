package store

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/a2139e8d/latchkey/locker"
)

var (
	//go:embed record.lua
	recordText string
	//go:embed take.lua
	takeText string
	//go:embed load.lua
	loadText string
	//go:embed commit.lua
	commitText string
	//go:embed extend.lua
	extendText string
	//go:embed create.lua
	createText string
	//go:embed replace.lua
	replaceText string
	//go:embed drop.lua
	dropText string

	takeScript    = newScript(takeText)
	loadScript    = newScript(loadText)
	commitScript  = newScript(commitText)
	extendScript  = newScript(extendText)
	createScript  = newScript(createText)
	replaceScript = newScript(replaceText)
	dropScript    = newScript(dropText)
	pingScript    = newScript(`redis.call('PING'); return 1`)
)

// newScript returns a script with what it includes.
func newScript(text string) *locker.Script {
	return locker.NewQueueScript(strings.Replace(text, "-- include record.lua\n", recordText, 1))
}

// What take.lua and load.lua say about a record, in their first value.
const (
	stateBusy      = 0 // another holds the lock; who, follows
	stateFound     = 1 // the record follows
	stateAbsent    = 2
	stateGone      = 3
	stateTooLarge  = 4 // the size follows, and after a take the record's name
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

// A taking is what take.lua found.
type taking struct {
	locker.Attempt
	text   []byte // the record, if it was taken and can be used
	name   string // of it, also if it cannot
	others bool   // other processes wait
}

// taken reads the reply of take.lua. Where the lock was taken, an error says that the
// record cannot be used.
func taken(reply any, err error) (t taking, _ error) {
	state, rest, err := stateOf(reply, err)
	switch {
	case err != nil:
		return t, err
	case state == stateBusy:
		t.Attempt, err = locker.HeldBy(rest)
		return t, err
	}
	t.text, err = found(reply, nil)
	ok := true
	switch state {
	case stateFound:
		var n int64
		n, ok = first[int64](rest[min(1, len(rest)):])
		t.name, t.others = recordName(t.text), n != 0
	case stateTooLarge:
		var name []byte
		name, ok = first[[]byte](rest[min(1, len(rest)):])
		t.name = string(name)
	case stateWrongType:
		t.name = foreignName
	}
	if !ok {
		return taking{}, unexpected(reply)
	}
	t.Taken = err == nil || unusable(err)
	return t, err
}

// What commit.lua and replace.lua answer. Where a write was refused, but an earlier try of it
// may have been done, the error wraps ErrUnavailable, too: it may be stored.
const (
	replyLost      = 0
	replyDone      = 1
	replyOthers    = 2 // done, and other processes wait
	replyLostAgain = 3
)

var errLostAgain = fmt.Errorf("%w, after a try whose reply was lost: %w", ErrLost, ErrUnavailable)

// committed reads the reply of commit.lua or replace.lua. others tells whether other
// processes wait.
func committed(reply any, err error) (others bool, _ error) {
	if err != nil {
		return false, err
	}
	n, ok := reply.(int64)
	if !ok {
		return false, unexpected(reply)
	}
	switch n {
	case replyDone, replyOthers:
		return n == replyOthers, nil
	case replyLostAgain:
		return false, errLostAgain
	case replyLost:
		return false, ErrLost
	}
	return false, unexpected(reply)
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

package records

import (
	"errors"
	"fmt"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// Why the lock of a session was lost, if the record is not the one that its holder has read or written. See
// changed in record.lua.
var (
	errChanged = fmt.Errorf("%w: another request has changed the session", ErrLost)
	errEnded   = endedError(ErrLost.Error() + ": another request has ended the session")
	errGone    = fmt.Errorf("%w: the session's record is gone: deleted, evicted, or expired", ErrLost)
)

// An endedError is an ErrLost and an ErrGone: to end a session that others hold is no fault.
type endedError string

func (e endedError) Error() string { return string(e) }

// Is makes errors.Is find both.
func (e endedError) Is(target error) bool { return target == ErrLost || target == ErrGone }

// Ended reports whether a lock was lost because its session has ended. why is what [Hold.OnLost] was told.
func Ended(why error) bool { return errors.Is(why, errEnded) || errors.Is(why, errGone) }

// HeldTooLong reports whether a lock was lost because of MaxHold. why is what [Hold.OnLost] was told.
func HeldTooLong(why error) bool { return errors.Is(why, lease.ErrMaxHold) }

// What the scripts reply in this case, in place of the state of the lock.
const (
	lostChanged = -3
	lostEnded   = -4
	lostGone    = -5
)

// readReply reads the reply of a script that extends the lock and compares the record.
func readReply(reply scripting.Reply, err error) error {
	if err != nil {
		return err
	}
	return readReplyAt(reply, 0)
}

// readReplyAt is readReply if the state is value i of the reply.
func readReplyAt(reply scripting.Reply, i int) error {
	switch state, _ := reply.IntAt(i); state {
	case lostChanged:
		return errChanged
	case lostEnded:
		return errEnded
	case lostGone:
		return errGone
	}
	return lease.ReadReplyAt(reply, i)
}

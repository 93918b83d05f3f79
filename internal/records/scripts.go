package records

import (
	"embed"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// The scripts serve the sessions of guests and of users. Package lua puts them together.
//
//go:embed golden
var texts embed.FS

var (
	takeScript       = scripting.Golden(texts, "take")
	loadScript       = scripting.Golden(texts, "load")
	commitScript     = scripting.Golden(texts, "commit")
	optimisticScript = scripting.Golden(texts, "optimistic")
	extendScript     = scripting.Golden(texts, "extend")
	createScript     = scripting.Golden(texts, "create")
	dropScript       = scripting.Golden(texts, "drop")
	endScript        = scripting.Golden(texts, "end")
	loginScript      = scripting.Golden(texts, "login")
	endAllScript     = scripting.Golden(texts, "endall")
	claimScript      = scripting.Golden(texts, "claim")
	userLostScript   = scripting.Golden(texts, "user_lost")
)

// The states of a record: the first value of the replies of take.lua and load.lua.
const (
	stateBusy      = 0 // another holder has the lock; its token follows
	stateFound     = 1 // the record follows
	stateAbsent    = 2
	stateGone      = 3 // the tombstone follows, and its time to live in ms, and Redis's time in s
	stateTooLarge  = 4 // the size follows, and after a take the record's revision
	stateWrongType = 5 // the key holds something that is not a string
)

// yes is an argument of a script that means true. For false the argument is empty or missing.
const yes = "1"

// found reads the reply of load.lua or take.lua. It returns the stored record if that is a string of
// permitted size. b is the box of the session.
func found(reply scripting.Reply, b *box) ([]byte, error) {
	switch state, _ := reply.IntAt(0); state {
	case stateFound:
		if text, ok := reply.BytesAt(1); ok {
			return text, nil
		}
	case stateAbsent:
		return nil, ErrNotFound
	case stateGone:
		tombstone, _ := reply.BytesAt(1)
		left, _ := reply.IntAt(2)
		now, _ := reply.IntAt(3)
		return nil, whyGone(tombstone, time.Duration(left)*time.Millisecond, b, time.Unix(now, 0))
	case stateTooLarge:
		if size, ok := reply.IntAt(1); ok {
			return nil, fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, size)
		}
	case stateWrongType:
		return nil, fmt.Errorf("%w: its key holds another Redis type", ErrCorrupt)
	}
	return nil, lease.Unexpected(reply)
}

package scripting

import (
	"errors"
	"sync/atomic"
)

// Replies have no names in Redis's protocol: the next reply that arrives is taken for the reply to the next
// command. If a fault of a proxy makes one reply arrive twice, each later reply is taken for the reply to another
// command, and users see each other's sessions. So each call has a number. The number is the first argument of the
// call, and comes back in the reply. A reply with another number is stray, and the connections are given up.
//
// The number is negative if an earlier try of the same call may have been done, or may still be done. Some
// scripts reply differently then.
//
// The frame of each script adds the number of the call to the result: see package lua. In an array the number is one
// more value. A result that is a number, which must be 0 to 3, becomes 4*call + number. Errors have no number, since
// most of them do not come from the script. If an error is taken for the reply to another call, that call looks
// refused although it may have been done: a commit is a 503 then, and a lock may stay locked for a lease. The next
// reply shows the fault.

// calls numbers the calls of this process. It begins at random, since a proxy may use one connection to Redis for
// several processes.
var calls atomic.Int64

func init() { calls.Store(int64(Chance() * (1 << 32))) }

var errStray = errors.New("a reply belongs to another call")

// unframe returns the reply of a script without its number, or errStray.
func unframe(reply any, call int64) (Reply, error) {
	switch reply := reply.(type) {
	case int64:
		if reply>>2 == call {
			return Reply{number: reply & 3}, nil
		}
	case []any:
		if n := len(reply) - 1; n >= 0 && reply[n] == call {
			return Reply{values: reply[:n]}, nil
		}
	case error:
		return Reply{}, refused(reply)
	}
	return Reply{}, errStray
}

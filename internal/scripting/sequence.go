package scripting

import (
	"errors"
	"sync/atomic"
)

// Replies have no names in Redis's protocol: the next one that arrives is taken for that of the
// next command. If a fault of a proxy makes one arrive twice, all that follow are taken for
// others', and users see each other's sessions. So each call has a number, which is its first
// argument and comes back in its reply. A reply with another number is nobody's, and the
// connection is given up.
//
// The number is negative where an earlier try of the same call may have been done, or may be done
// yet, which some scripts answer differently.
//
// The frame of each script numbers what it returns: see package lua. An array gets the number as one
// more value. A number, which must be 0 to 3, becomes 4*call + number. Errors have none, since most are
// not made by the script. One that is taken for another call's may make that look refused though it was
// done: a commit is a 503 then, and a lock may stay shut for a lease. The reply behind it is found out.

// calls numbers the calls of this process. It begins somewhere, since a proxy may give the
// connections of several processes to the same one.
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

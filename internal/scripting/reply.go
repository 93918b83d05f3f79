package scripting

import (
	"errors"
	"strconv"
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
// refused although it may have been done: the request of a commit is then answered with 503, and a lock may stay
// locked for a lease. The next reply shows the fault.

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
		return Reply{}, Refused(reply)
	}
	return Reply{}, errStray
}

// A Reply is a script's reply. A client may return text as a string or as a []byte.
type Reply struct {
	values []any
	number any // an int64, if the reply is a number and not an array
}

// Int returns the number, if the reply is a number.
func (r Reply) Int() (int64, bool) {
	n, ok := r.number.(int64)
	return n, ok
}

// Len returns how many values an array has.
func (r Reply) Len() int { return len(r.values) }

// IntAt returns value i of an array, if it is a number, or the text of one.
func (r Reply) IntAt(i int) (int64, bool) {
	if i < len(r.values) {
		if n, ok := r.values[i].(int64); ok {
			return n, true
		}
	}
	text, _ := r.TextAt(i)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// TextAt returns value i of an array, if it is text.
func (r Reply) TextAt(i int) (string, bool) {
	b, ok := r.BytesAt(i)
	return string(b), ok
}

// BytesAt is TextAt for a value that may be large.
func (r Reply) BytesAt(i int) ([]byte, bool) {
	if i < len(r.values) {
		return Text(r.values[i])
	}
	return nil, false
}

// Text returns a reply to a command, if it is text.
func Text(reply any) ([]byte, bool) {
	switch v := reply.(type) {
	case []byte:
		return v, true
	case string:
		return []byte(v), true
	}
	return nil, false
}

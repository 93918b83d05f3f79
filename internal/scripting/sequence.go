package scripting

import (
	"errors"
	"strings"
	"sync/atomic"
)

// Replies have no names in Redis's protocol: the next reply that arrives is taken for the reply to the next
// command. If a fault of a proxy makes one reply arrive twice, all that follow are taken for others', and users see
// each other's sessions. So each call has a number. It is the last argument of the call, and comes back in the
// reply. A reply with another number is stray, and the connections are given up.
//
// The number is negative if an earlier try of the same call may have been done, or may still be done. Some
// scripts reply differently then.
//
// In an array the number is one more value. A number, which must be 0 to 3, becomes 4*call + number. Errors have
// no number, since the script does not make most of them. If an error is taken for the reply to another call, that
// call looks refused although it may have been done: a commit is a 503 then, and a lock may stay locked for a
// lease. The next reply shows the fault.

// framed returns the script that Redis runs. The frame costs Redis half a microsecond. So a script may have a part
// ahead of the frame, for the usual case, up to the line "framed from here". That part numbers its result itself,
// as 4*ARGV[#ARGV] plus a number.
func framed(text string) string {
	first, rest, ok := strings.Cut(text, "-- framed from here\n")
	if !ok {
		first, rest = "", text
	}
	return first + "local function script()\n" + rest + `
end
local reply, call = script(), tonumber(ARGV[#ARGV])
if type(reply) == 'number' then
  return 4 * call + reply
elseif not reply.err then
  reply[#reply + 1] = call
end
return reply
`
}

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

package transport

import (
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A call is the commands of one exchange on a link.
type call struct {
	commands []Command
	deadline time.Time // when its link breaks
	link     *link
	since    time.Time   // when the link got it
	taken    bool        // it is sent, or is being sent
	sent     atomic.Bool // redigo has it, and needs the arguments no more

	waits bool          // for wake, which has room for one signal
	wake  chan struct{} //

	done    bool
	replies []any
	err     error
}

func (x *call) end(replies []any, err error) {
	x.done, x.replies, x.err = true, replies, err
	x.signal()
}

// signal makes the one that waits look again.
func (x *call) signal() {
	if x.waits {
		select {
		case x.wake <- struct{}{}:
		default: // it will
		}
	}
}

// send sends the commands. It is called without the client's mu, as is receive.
func (x *call) send(conn redis.Conn) (err error) {
	defer recovered(&err) // a command without a name
	for _, command := range x.commands {
		if err := conn.Send(command[0].(string), command[1:]...); err != nil {
			return err
		}
	}
	x.sent.Store(true)
	return nil
}

// receive returns the replies. The link's tick limits how long that takes.
func (x *call) receive(conn redis.Conn) (replies []any, err error) {
	defer recovered(&err) // redigo panics where a reply is absurd
	replies = make([]any, len(x.commands))
	for i := range replies {
		reply, err := redis.ReceiveWithTimeout(conn, 0)
		if refused, ok := err.(redis.Error); ok {
			reply = refused
		} else if err != nil {
			return nil, err
		}
		replies[i] = reply
	}
	if !x.sent.Load() {
		return nil, errStray
	}
	return replies, nil
}

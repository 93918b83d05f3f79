package scripting

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// The size of a batch. All its commands are sent before any reply is read. Redis
// itself keeps the replies in memory meanwhile, and goes on reading. But a proxy
// may stop to read while nobody reads from it, and then both sides would wait for
// each other. So a batch is no more than what the network takes in, and a command
// that is larger goes alone.
//
// maxBatch keeps down the memory that the replies take in Redis, and the time that
// one waits for those of others.
const (
	maxBatch = 32
	maxBytes = 32 << 10
)

// A command is to be sent, once.
type command struct {
	name     string
	args     []any
	deadline time.Time // for its reply
	patience time.Time // when its caller leaves: then, or sooner
	call     int64     // the number that is to be in it; see frame.go
}

// size is about how many bytes c takes on the wire.
func (c command) size() int {
	size := 0
	for _, arg := range c.args {
		size += 16
		switch arg := arg.(type) {
		case string:
			size += len(arg)
		case []byte:
			size += len(arg)
		}
	}
	return size
}

// A fate is what came of a command.
type fate struct {
	reply  any
	err    error
	maybe  bool // Redis has not answered, but may have done it
	broken bool // the connection was no good; another one may be
}

// An exchange is a command and its way to Redis and back. Another may drive it
// than the one who waits for it.
type exchange struct {
	command
	*ticket           // nil if it found a free lane
	next    *exchange // in the batch
	sent    bool      // written by the driver, with the ticket's mu held
	fate    fate      // written by the driver, before it tells
	over    bool      // the driver has told
}

// newExchange returns an exchange that somebody waits for.
func newExchange(c command) *exchange {
	return &exchange{command: c, ticket: &ticket{turn: make(chan bool, 1)}}
}

// A ticket is for an exchange that waits.
type ticket struct {
	turn chan bool // true: you drive; false: it is done

	// mu is held while the arguments are read. They belong to the caller, which
	// does not return in the middle of that.
	mu   sync.Mutex
	left bool // do not send it
}

// alight ends the wait of an exchange that is in a batch, unless it was sent and
// there is time left. Its reply will be read all the same, for the sake of those
// behind it.
func (x *exchange) alight(why error) (f fate, over bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.sent {
		x.left = true
		return noConnection(why), true
	}
	return fate{err: why, maybe: true}, errors.Is(why, context.DeadlineExceeded)
}

// send sends the command, unless nobody waits for it any more.
func (x *exchange) send(conn redis.Conn) error {
	if x.ticket != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.left {
			return nil
		}
	}
	x.sent = true
	return conn.Send(x.name, x.args...)
}

// done tells x its fate, if it waits.
func (x *exchange) done(f fate) {
	x.fate, x.over = f, true
	if x.ticket != nil {
		x.turn <- false // which has room: true was received, or never sent
	}
}

// hurried reports whether the caller has less time than an exchange may take.
func (c command) hurried() bool { return c.patience.Before(c.deadline) }

// run makes the exchanges of a batch. The first is the driver's, and its deadline
// is that of all; it is that of an exchange, however little time its caller has. Whoever has
// less time leaves by itself. Whoever has more finds the connection broken then, and tries
// again on another one: scripts may be repeated.
func run(conn redis.Conn, driver *exchange) {
	unanswered, broken, demoted := driver, errPanic, false
	defer func() {
		if unanswered != nil {
			abandon(conn, driver, unanswered, broken)
		}
	}()
	if err := send(conn, driver); err != nil {
		broken = err
		return
	}
	for unanswered != nil {
		x := unanswered
		var f fate
		if x.sent {
			left := max(time.Until(driver.deadline), 1) // 0 would be no limit
			f.reply, f.err = receive(conn, left, x.command)
			if f.err != nil && !isRefusal(f.err) {
				broken = f.err
				return
			}
			demoted = demoted || isDemoted(f.err)
		}
		unanswered = x.next
		x.done(f)
	}
	if demoted {
		spoil(conn)
	}
}

// isDemoted reports whether err is the refusal of a replica. After a failover the way
// to Redis usually leads to the new master, but a connection that is open stays with
// the old one, and is of no more use.
func isDemoted(err error) bool {
	refused, ok := errors.AsType[redis.Error](err)
	return ok && strings.Contains(string(refused), "READONLY")
}

// receive receives the reply of a call.
func receive(conn redis.Conn, timeout time.Duration, c command) (any, error) {
	reply, err := redis.ReceiveWithTimeout(conn, timeout)
	if c.name == "EVAL" && isNoScript(err) {
		return nil, errStray // EVAL is never told that: it was another's
	}
	if err != nil {
		return nil, err
	}
	return unframe(reply, c.call)
}

// send sends the commands of a batch.
func send(conn redis.Conn, batch *exchange) error {
	for x := batch; x != nil; x = x.next {
		if err := x.send(conn); err != nil {
			return err
		}
	}
	return conn.Flush()
}

// errPanic is what the others of a batch get when redigo panics.
var errPanic = errors.New("a panic")

// abandon tells those without a reply that the connection is broken, and sees to
// it that it is: else a late reply would be taken for that of the next command.
func abandon(conn redis.Conn, driver, unanswered *exchange, err error) {
	// A time-out is the driver's alone, so the others get only the text of it.
	theirs := errors.New("the connection broke: " + err.Error())
	for x := unanswered; x != nil; x = x.next {
		f := fate{err: theirs, maybe: x.sent, broken: true}
		if x == driver {
			f.err, f.broken = err, !isTimeout(err)
		}
		x.done(f)
	}
	spoil(conn)
}

// spoil breaks a connection, so that the pool does not keep it: it wants one reply more
// than have arrived, without waiting for it.
func spoil(conn redis.Conn) {
	var none error
	for none == nil || isRefusal(none) {
		_, none = redis.ReceiveWithTimeout(conn, -1)
	}
}

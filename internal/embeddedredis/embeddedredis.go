// Package embeddedredis is a Redis inside the process: for development (package store/embedded), for the demo,
// and for the tests of programs (package sessiontest). It is miniredis, with two differences.
//
// It has no port. Connections are pipes within the process, so nobody else on the machine can read it, and no
// other program can take its address.
//
// Its clock runs. The keys of a Miniredis age only if somebody tells it to, so without a clock no lock and no
// session would ever expire. In a bubble of testing/synctest the clock is that of the bubble.
package embeddedredis

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/gomodule/redigo/redis"
)

// A Redis runs from Start until Close.
type Redis struct {
	*miniredis.Miniredis

	dialling sync.Mutex // guards closed, and is held while a connection begins
	closed   bool

	clock sync.Mutex    // guards the fields below, and is held while keys age
	aged  time.Time     // the time up to which keys have aged
	pause time.Duration // until they age again
}

// err32Bits says why there is no embedded Redis on a 32-bit system.
var err32Bits = errors.New("the embedded Redis needs a 64-bit system: Miniredis cuts the numbers of scripts to the size of an int")

// Start starts an empty Redis, unless the system is a 32-bit one. before may be nil. Otherwise it is called before each
// command, also before those of scripts, and reports whether it has sent the reply itself.
func Start(before server.Hook) (*Redis, error) {
	if strconv.IntSize < 64 {
		return nil, err32Bits
	}
	r := &Redis{Miniredis: miniredis.NewMiniRedis(), aged: time.Now()}
	if first, err := r.Dial(); err == nil { // the first connection starts it, and cannot fail
		_ = first.Close()
	}
	r.Server().SetPreHook(func(peer *server.Peer, command string, args ...string) bool {
		r.tick(command)
		return before != nil && before(peer, command, args...)
	})
	return r, nil
}

// Dial is Miniredis.Dial, but fails after Close: Miniredis would start again, and nobody would end it.
func (r *Redis) Dial() (net.Conn, error) {
	r.dialling.Lock()
	defer r.dialling.Unlock()
	if r.closed {
		return nil, net.ErrClosed
	}
	return r.Miniredis.Dial()
}

// Close ends all connections.
func (r *Redis) Close() {
	r.dialling.Lock()
	r.closed = true
	r.dialling.Unlock()
	r.Miniredis.Close()
}

// Pool returns a pool whose connections have no timeouts of their own.
func (r *Redis) Pool() *redis.Pool {
	return &redis.Pool{Dial: func() (redis.Conn, error) {
		conn, err := r.Dial()
		if err != nil {
			return nil, err
		}
		return redis.NewConn(conn, 0, 0), nil
	}}
}

// Idle reports whether no script was running a moment ago. For the commands of a script it is always false, since
// a Miniredis is locked while it runs a script.
func (r *Redis) Idle() bool {
	idle := r.TryLock()
	if idle {
		r.Unlock()
	}
	return idle
}

// The keys do not age more often than Redis's clock ticks. Many keys age less often, since each time costs a look at
// all of them: ten thousand keys five times a second.
const (
	precision = time.Millisecond
	perKey    = 20 * time.Microsecond
)

// tick lets as much time pass for the keys as has passed for the process. For a script, time stands still, as in
// a real Redis. Therefore this is not miniredis's ClockTTL, which lets keys age whenever one is looked at.
func (r *Redis) tick(command string) {
	if command != "EVALSHA" && command != "EVAL" && !r.Idle() {
		return // perhaps it is a command of a script, which is never EVALSHA itself
	}
	r.clock.Lock()
	defer r.clock.Unlock()
	now := time.Now()
	if passed := now.Sub(r.aged); passed >= r.pause {
		r.aged = now
		r.FastForward(passed)
		r.pause = max(precision, time.Duration(len(r.Keys()))*perKey)
	}
}

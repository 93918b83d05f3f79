package sessiontest

import (
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/embeddedredis"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/gomodule/redigo/redis"
)

// timeout is long, for busy machines. If Redis is down, connections fail at once.
const timeout = 10 * time.Second

// embedded is a Redis inside the test binary that may be down or full.
type embedded struct {
	mini *embeddedredis.Redis

	mu    sync.Mutex // guards the fields below
	down  int        // number of calls of Down in force
	full  int
	conns map[net.Conn]bool
	dirty bool // the current or last script has written something
}

func newEmbedded() (*embedded, error) {
	e := &embedded{conns: map[net.Conn]bool{}}
	var err error
	e.mini, err = embeddedredis.Start(e.before)
	return e, err
}

func (e *embedded) close() {
	e.hangUp()
	e.mini.Close()
}

// pool returns a pool that connects.
func (e *embedded) pool() *redis.Pool {
	return &redis.Pool{Dial: func() (redis.Conn, error) {
		conn, err := e.dial()
		if err != nil {
			return nil, err
		}
		return redis.NewConn(conn, timeout, timeout), nil
	}}
}

func (e *embedded) dial() (net.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down > 0 {
		return nil, errors.New("connection refused: sessiontest's Down is in force")
	}
	conn, err := e.mini.Dial()
	if err == nil {
		e.conns[conn] = true
	}
	return conn, err
}

// hangUp breaks all connections.
func (e *embedded) hangUp() {
	e.mu.Lock()
	conns := slices.Collect(maps.Keys(e.conns))
	clear(e.conns)
	e.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// during increments the count of a condition. The function that it returns decrements the count, once.
func (e *embedded) during(condition *int) (end func()) {
	e.add(condition, 1)
	return sync.OnceFunc(func() { e.add(condition, -1) })
}

func (e *embedded) add(condition *int, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	*condition += n
}

// before runs before each command, also before those of scripts, and reports whether it has sent the reply
// itself.
func (e *embedded) before(peer *server.Peer, command string, args ...string) bool {
	if e.mini.Idle() {
		e.wrote(false)
	}
	switch command {
	case "SET":
		if e.refuses() {
			peer.WriteError("OOM command not allowed when used memory > 'maxmemory'.")
			return true
		}
		e.wrote(true)
	case "DEL", "PEXPIRE":
		e.wrote(true)
	}
	return false
}

// refuses reports whether Redis is full. A script that has already written something is not refused.
func (e *embedded) refuses() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.full > 0 && !e.dirty
}

func (e *embedded) wrote(something bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dirty = something
}

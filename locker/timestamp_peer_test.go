package locker

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A peer takes a lock as programs in other languages do, one command after
// another. Each command is a method, so that a test can let others come between.
type peer struct {
	t     *testing.T
	conn  redis.Conn
	key   string
	lease time.Duration

	reply string // to the last GET or GETSET; "" stands for nil
	value string // the last one that it wrote
	holds bool   // what it believes

	nilGet, nilGetset int // how often it met no value there
}

// A step is what one contender does at a time. It returns its next step, or nil
// where there is none.
type step func() step

// newPeer returns a peer that asks for key, on a connection of its own.
func newPeer(t *testing.T, server *redistest.Server, key string) *peer {
	t.Helper()
	return &peer{t: t, conn: dialed(t, server), key: key, lease: patient.Lease}
}

func dialed(t *testing.T, server *redistest.Server) redis.Conn {
	t.Helper()
	conn, err := redis.Dial("tcp", server.Addr, redis.DialReadTimeout(patient.Timeout))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// take makes one whole try.
func (p *peer) take() bool {
	for next := step(p.setnx); next != nil; {
		next = next()
	}
	if p.holds {
		p.expire()
	}
	return p.holds
}

// wait tries until it has the lock.
func (p *peer) wait() {
	for !p.take() {
		time.Sleep(time.Millisecond)
	}
}

// setnx begins a try. It wins where there is no value.
func (p *peer) setnx() step {
	if p.do("SETNX", p.key, p.newValue()) == "1" {
		p.holds = true
		return nil
	}
	return p.get
}

// get looks at the value. None at all does not mean a stale lock, but one that
// was given back: then everybody starts again.
func (p *peer) get() step {
	p.reply = p.do("GET", p.key)
	switch {
	case p.reply == "":
		p.nilGet++
		return p.setnx
	case !p.stale():
		return nil
	}
	return p.getset
}

// getset takes over a stale lock. Of all who try, the first one gets back the
// stale value, or none where the lock vanished in between.
func (p *peer) getset() step {
	p.reply = p.do("GETSET", p.key, p.newValue())
	if p.reply == "" {
		p.nilGetset++
	} else if !p.stale() {
		return nil
	}
	p.holds = true
	return nil
}

// expire is the last step of a winner. It keeps Redis tidy, and decides nothing.
func (p *peer) expire() {
	p.do("EXPIRE", p.key, int(p.lease.Seconds()))
}

// del gives the lock back.
func (p *peer) del() step {
	p.holds = false
	p.do("DEL", p.key)
	return nil
}

// stale tells whether the last reply lies in the past.
func (p *peer) stale() bool {
	value, err := strconv.ParseInt(p.reply, 10, 64)
	if err != nil {
		p.t.Errorf("the peer cannot read %q", p.reply)
	}
	return value < time.Now().UnixMilli()
}

func (p *peer) newValue() string {
	p.value = strconv.FormatInt(time.Now().Add(p.lease).UnixMilli(), 10)
	return p.value
}

// do runs a command and returns the reply as text.
func (p *peer) do(command string, args ...any) string {
	reply, err := p.conn.Do(command, args...)
	if n, ok := reply.(int64); ok {
		return strconv.FormatInt(n, 10)
	}
	text, err := redis.String(reply, err)
	if err != nil && !errors.Is(err, redis.ErrNil) {
		p.t.Errorf("the peer's %s: %v", command, err)
	}
	return text
}

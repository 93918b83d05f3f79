package locker

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// longAgo is the value of a lock whose holder died in 2001.
const longAgo = "1000000000000"

// A peer takes a lock as programs in other languages do, one command after another. Each command is a method, so
// that a test can run others in between.
type peer struct {
	t     *testing.T
	conn  redis.Conn
	lease time.Duration

	reply string // to the last GET or GETSET; "" stands for nil
	value string // the last value that it wrote
	holds bool   // what it believes

	nilGet, nilGetset int // how often it met no value in these commands
}

// A step is what one contender does at a time. It returns its next step, or nil if there is none.
type step func() step

// newPeer returns a peer that wants key "k", on its own connection.
func newPeer(t *testing.T, server *redistest.Server, lease time.Duration) *peer {
	conn := server.Pool(t, 1).Get()
	t.Cleanup(func() { conn.Close() })
	return &peer{t: t, conn: conn, lease: lease}
}

// take makes one whole try.
func (p *peer) take() bool {
	for next := step(p.setnx); next != nil; {
		next = next()
	}
	return p.holds
}

// setnx begins a try. It wins if there is no value.
func (p *peer) setnx() step {
	if p.do("SETNX", "k", p.newValue()) == "1" {
		p.holds = true
		return nil
	}
	return p.get
}

// get looks at the value. If there is none, the lock was released, and is not stale: then everybody starts again.
func (p *peer) get() step {
	p.reply = p.do("GET", "k")
	switch {
	case p.reply == "":
		p.nilGet++
		return p.setnx
	case !p.stale():
		return nil
	}
	return p.getset
}

// getset takes over a stale lock. Of all peers that try, the first one gets the stale value back, or none if the
// lock vanished in between.
func (p *peer) getset() step {
	p.reply = p.do("GETSET", "k", p.newValue())
	if p.reply == "" {
		p.nilGetset++
	} else if !p.stale() {
		return nil
	}
	p.holds = true
	return nil
}

// seesStale begins a try on the lock of longAgo, up to the step that takes it over.
func (p *peer) seesStale(server *redistest.Server) {
	server.Do(p.t, "SET", "k", longAgo)
	p.setnx()
	p.get()
}

// release releases the lock.
func (p *peer) release() step {
	p.holds = false
	p.do("DEL", "k")
	return nil
}

// stale reports whether the last reply is a time in the past.
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

// A contender is a Go process that takes the lock by single tries, so that a test decides when it tries.
type contender struct {
	Algorithm
	t     *testing.T
	token string
	holds bool
	lost  bool // its Release found another's lock
}

func newContender(t *testing.T, server *redistest.Server) *contender {
	client := transport.NewRedigo(server.Pool(t, 1), patient.Timeout)
	t.Cleanup(func() { client.Close() })
	return &contender{t: t, Algorithm: TimestampAlgorithm(client), token: rand.Text()}
}

// take makes one try, which is one step for all others.
func (c *contender) take() step {
	found, err := c.Take(context.Background(), "k", c.token, patient.Lease)
	if err != nil {
		c.t.Errorf("Take: %v", err)
	}
	c.holds = found.Taken
	return nil
}

// release releases the lock.
func (c *contender) release() step {
	c.holds = false
	err := c.Release(context.Background(), "k", c.token, 0)
	c.lost = errors.Is(err, ErrLost)
	if err != nil && !c.lost {
		c.t.Errorf("Release: %v", err)
	}
	return nil
}

// contents returns the lock's value and note, or "" for none.
func contents(t *testing.T, server *redistest.Server) (value, note string) {
	t.Helper()
	if _, err := redis.Scan(server.Do(t, "MGET", "k", "{k}.owner").([]any), &value, &note); err != nil {
		t.Fatal(err)
	}
	return value, note
}

// remains are the values of lock and note that a contender may find in Redis.
var remains = map[string][2]string{
	"nothing":            {},
	"a peer's lock":      {longAgo, ""},
	"a process's lock":   {longAgo, longAgo + " f token"},
	"a lock taken stale": {longAgo, longAgo + " s token"},
}

// begin empties Redis, except for remain.
func begin(t *testing.T, server *redistest.Server, remain [2]string) {
	for i, key := range []string{"k", "{k}.owner"} {
		if server.Do(t, "DEL", key); remain[i] != "" {
			server.Do(t, "SET", key, remain[i])
		}
	}
}

// Peers and processes do something that only one may do at a time. Nobody releases the lock: it becomes stale
// each time, so that all compete to take it over.
func TestTimestampExcludesPeers(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, server *redistest.Server) {
		if !server.IsReal() {
			redistest.Elapse(Years)
		}
		const each, times = 3, 20
		n := 0
		var all sync.WaitGroup
		compete := func(take func() bool) {
			all.Go(func() {
				for range times {
					for !take() {
						spend(time.Millisecond)
					}
					read := n
					spend(time.Microsecond) // lets others run, which only the lock keeps out
					n = read + 1
					server.Do(t, "SET", "k", longAgo)
				}
			})
		}
		for i := range each {
			p, c := newPeer(t, server, patient.Lease+time.Duration(i)*s), newContender(t, server)
			compete(func() bool { p.holds = false; return p.take() })
			compete(func() bool { c.token = rand.Text(); c.take(); return c.holds })
		}
		all.Wait()
		if n != 2*each*times {
			t.Errorf("counted %d of %d", n, 2*each*times)
		}
	})
}

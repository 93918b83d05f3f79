package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

// Size of the pool that [Open] makes. Package locker's client shares a few
// connections among all exchanges, so there are always some to spare.
const (
	poolSize    = 64
	idleTimeout = 4 * time.Minute // less than what firewalls tend to allow
)

// Open returns a store on the Redis at the given URL, with a pool of its own.
// It does not connect yet, so a process may start before its Redis does; see
// [Store.Ping]. The forms are
//
//	redis://[user:password@]host[:port][/database]
//	rediss://…                                       the same over TLS
//	unix://[user:password@]/path/to/socket[?db=database]
//
// For anything else, such as a private certificate authority, make a pool and
// use [New]. Errors never repeat the URL, which may hold a password.
func Open(rawURL string, o Options) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	target, err := parseURL(rawURL)
	if err != nil {
		return nil, fmt.Errorf("store: redis URL: %w", err)
	}
	timeout := o.Timeout
	if timeout == 0 {
		timeout = locker.DefaultTimeout
	}
	s := New(target.pool(timeout), o)
	s.owned = true
	return s, nil
}

// A target is what a Redis URL says.
type target struct {
	network, address   string
	username, password string
	database           int
	tls                bool
}

func parseURL(raw string) (target, error) {
	u, err := url.Parse(raw)
	if err != nil { // the error repeats parts of the URL
		return target{}, errors.New("cannot be parsed; special characters in the password must be percent-encoded")
	}
	t := target{network: "tcp", tls: u.Scheme == "rediss", username: u.User.Username()}
	t.password, _ = u.User.Password()
	if t.username != "" && t.password == "" {
		return target{}, errors.New("names a user without a password: write user:password@, or :password@")
	}

	database := strings.TrimPrefix(u.Path, "/")
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil { // it may be the rest of a password that was not encoded
		return target{}, errors.New("has parameters that cannot be parsed")
	}
	switch u.Scheme {
	case "redis", "rediss":
		if u.Hostname() == "" {
			return target{}, errors.New("has no host")
		}
		port := u.Port()
		if port == "" {
			port = "6379"
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return target{}, errors.New("names a port that does not exist")
		}
		t.address = net.JoinHostPort(u.Hostname(), port)
	case "unix":
		if u.Path == "" || u.Host != "" {
			return target{}, errors.New("names no socket: write unix:///path/to/socket")
		}
		t.network, t.address, database = "unix", u.Path, query.Get("db")
		query.Del("db")
	default:
		return target{}, errors.New("must begin with redis://, rediss:// or unix://")
	}
	if len(query) > 0 || u.Fragment != "" {
		return target{}, errors.New("has parameters that are not known here")
	}
	if database != "" {
		t.database, err = strconv.Atoi(database)
		if err != nil || t.database < 0 {
			return target{}, errors.New("names a database that is not a number")
		}
	}
	return t, nil
}

func (t target) pool(timeout time.Duration) *redis.Pool {
	options := []redis.DialOption{
		redis.DialContextFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
			d := net.Dialer{Timeout: timeout}
			c, err := d.DialContext(ctx, network, address)
			if end, ok := ctx.Deadline(); ok && err == nil {
				_ = c.SetDeadline(end) // also for the TLS handshake; redigo sets its own later
			}
			return c, err
		}),
		redis.DialReadTimeout(timeout),
		redis.DialWriteTimeout(timeout),
		redis.DialUsername(t.username),
		redis.DialPassword(t.password),
		redis.DialDatabase(t.database),
	}
	if t.tls {
		host, _, _ := net.SplitHostPort(t.address) // was joined by parseURL
		options = append(options, redis.DialUseTLS(true),
			redis.DialTLSHandshakeTimeout(timeout),
			redis.DialTLSConfig(&tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}))
	}
	forsaken := &moment{base: time.Now()}
	return &redis.Pool{
		MaxActive:   poolSize,
		MaxIdle:     poolSize,
		IdleTimeout: idleTimeout,
		Wait:        false, // package locker's client waits, and only where it must
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			c, err := redis.DialContext(ctx, t.network, t.address, options...)
			if err != nil {
				return nil, err
			}
			return &masterConn{Conn: c, forsaken: forsaken, patience: timeout / 2}, nil
		},
		TestOnBorrowContext: func(_ context.Context, _ redis.Conn, last time.Time) error {
			if !forsaken.before(last) {
				return errForsaken
			}
			return nil
		},
	}
}

var errForsaken = errors.New("the server was demoted to a replica, or is silent")

// A masterConn is a connection that is of no more use once its server has become
// a replica. After a failover the address usually leads to the new master, but
// connections that are open stay with the old one: they, and all that are older,
// must be given up. The same goes for a server that does not answer: it may be
// there no more, and each connection to it would cost a time-out.
type masterConn struct {
	redis.Conn
	forsaken *moment // no connection of the pool that was not used since is to be used
	dead     bool
	patience time.Duration // a shorter silence says nothing of the server
}

// ReceiveWithTimeout is how package locker's client gets its replies.
func (c *masterConn) ReceiveWithTimeout(d time.Duration) (any, error) {
	begun := time.Now()
	reply, err := redis.ReceiveWithTimeout(c.Conn, d)
	return reply, c.heed(begun, d, err)
}

// DoWithTimeout completes [redis.ConnWithTimeout].
func (c *masterConn) DoWithTimeout(d time.Duration, command string, args ...any) (any, error) {
	begun := time.Now()
	reply, err := redis.DoWithTimeout(c.Conn, d, command, args...)
	return reply, c.heed(begun, d, err)
}

// heed returns err, having noted whether it is that of a replica, or of a server that
// has said nothing for d.
func (c *masterConn) heed(begun time.Time, d time.Duration, err error) error {
	if refused, ok := errors.AsType[redis.Error](err); ok && strings.Contains(string(refused), "READONLY") {
		c.dead = true
		c.forsaken.move(time.Now())
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && d >= c.patience {
		c.forsaken.move(begun) // what was used since then has got an answer since then
	}
	return err
}

// A moment only moves forwards. It is reckoned from another one, so that it does not
// matter when the clock is set.
type moment struct {
	base time.Time
	ns   atomic.Int64 // since base; 0: never
}

func (m *moment) before(t time.Time) bool { return m.ns.Load() < int64(t.Sub(m.base)) }

func (m *moment) move(to time.Time) {
	next := int64(to.Sub(m.base))
	for old := m.ns.Load(); old < next; old = m.ns.Load() {
		if m.ns.CompareAndSwap(old, next) {
			return
		}
	}
}

// Err tells the pool whether to keep the connection.
func (c *masterConn) Err() error {
	if c.dead {
		return errForsaken
	}
	return c.Conn.Err()
}

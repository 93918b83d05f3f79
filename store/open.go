package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

// Open returns a store on the Redis at a URL:
//
//	redis://[user:password@]host[:port][/database]
//	rediss://…                                       the same over TLS
//	unix://[user:password@]/path/to/socket[?db=database]
//
// valkey:// and valkeys:// mean the same as redis:// and rediss://. For anything else make a pool and use
// [New]. Errors never contain the URL, which may hold a password.
func Open(rawURL string, o Options) (*Store, error) {
	target, err := parseURL(rawURL)
	if err != nil {
		return nil, fmt.Errorf("store: redis URL: %w", err)
	}
	switch {
	case o.TLS != nil && !target.tls:
		return nil, errors.New("store: Options.TLS is set, but the URL's scheme has no TLS: write rediss:// or valkeys://")
	case o.Credentials != nil && (target.username != "" || target.password != ""):
		return nil, errors.New("store: Options.Credentials is set, but the URL has a user or a password as well: remove them from the URL")
	case target.username != "" && target.password == "":
		return nil, errors.New("store: redis URL: names a user without a password: write user:password@, or :password@")
	}
	pool := target.pool(cmp.Or(o.Timeout, locker.DefaultTimeout), o.TLS, o.Credentials)
	o.TLS, o.Credentials = nil, nil
	st := newAt(target.address, strconv.Itoa(target.database), pool, o)
	if err := st.engine.Err(); err != nil {
		return nil, err
	}
	return st, nil
}

// A target is the content of a Redis URL.
type target struct {
	network, address   string
	username, password string
	database           int
	tls                bool
}

var errScheme = errors.New("must begin with redis://, rediss://, valkey://, valkeys:// or unix://")

func parseURL(raw string) (target, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil && !strings.Contains(raw, "://"): // an address alone
		return target{}, errScheme
	case err != nil: // the error repeats parts of the URL
		return target{}, errors.New("cannot be parsed; special characters in the password must be percent-encoded")
	}
	t := target{network: "tcp", tls: u.Scheme == "rediss" || u.Scheme == "valkeys", username: u.User.Username()}
	t.password, _ = u.User.Password()
	database := strings.TrimPrefix(u.Path, "/")
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil { // the query may be the rest of a password that was not encoded
		return target{}, errors.New("has parameters that cannot be parsed")
	}
	switch u.Scheme {
	case "redis", "rediss", "valkey", "valkeys":
		if u.Hostname() == "" {
			return target{}, errors.New("has no host")
		}
		if strings.Contains(u.Host, ",") {
			return target{}, errors.New("names several hosts: for Sentinel or a cluster use store/rueidisstore or store/goredisstore")
		}
		port := cmp.Or(u.Port(), "6379")
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
		return target{}, errScheme
	}
	if len(query) > 0 || u.Fragment != "" {
		return target{}, errors.New("has unknown parameters")
	}
	if database != "" {
		t.database, err = strconv.Atoi(database)
		if err != nil || t.database < 0 {
			return target{}, errors.New("names a database that is not a number")
		}
	}
	return t, nil
}

// pool returns a pool that dials t. config is for TLS, and ask returns the credentials; both may be nil.
func (t target) pool(timeout time.Duration, config *tls.Config,
	ask func(context.Context) (user, password string, err error)) *redis.Pool {
	options := []redis.DialOption{
		redis.DialReadTimeout(timeout), // during the login
		redis.DialDatabase(t.database),
	}
	if t.tls {
		config = cmp.Or(config, &tls.Config{MinVersion: tls.VersionTLS12}).Clone()
		options = append(options, redis.DialUseTLS(true), redis.DialTLSHandshakeTimeout(timeout), redis.DialTLSConfig(config))
	}
	return &redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
		user, password := t.username, t.password
		if ask != nil {
			var err error
			user, password, err = ask(ctx)
			if err != nil {
				return nil, fmt.Errorf("Options.Credentials: %w", err)
			}
			if password == "" { // redigo would not log in at all
				return nil, errors.New("Options.Credentials returned no password")
			}
		}
		as := []redis.DialOption{redis.DialUsername(user), redis.DialPassword(password)}
		return t.dial(ctx, timeout, slices.Concat(options, as))
	}}
}

// dial makes a connection before ctx ends. After that the connection has no deadlines: package transport bounds
// each round trip, and a deadline of redigo's for each command would cost a sixth of a round trip's CPU time.
func (t target) dial(ctx context.Context, timeout time.Duration, options []redis.DialOption) (redis.Conn, error) {
	var c net.Conn
	dial := func(ctx context.Context, network, address string) (_ net.Conn, err error) {
		c, err = (&net.Dialer{Timeout: timeout}).DialContext(ctx, network, address)
		if end, ok := ctx.Deadline(); ok && err == nil {
			_ = c.SetDeadline(end) // also for the TLS handshake
		}
		if err == nil && !t.tls {
			return &guard{Conn: c}, nil
		}
		return c, err
	}
	conn, err := redis.DialContext(ctx, t.network, t.address, append(options, redis.DialContextFunc(dial))...)
	if err == nil {
		_ = c.SetDeadline(time.Time{})
	}
	return conn, err
}

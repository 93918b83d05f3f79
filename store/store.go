// Package store keeps sessions in Redis. A program opens a store when it starts, and gives it to package
// middleware, which does the rest.
//
//	st, err := store.Open("redis://127.0.0.1:6379", store.Options{})
//	...
//	defer st.Close()
//	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{key}})
//
// # Which constructor
//
//   - [Open]: one server, by its URL
//   - [New]: the redigo pool that the program has already, which may ask Sentinel for the master
//   - Open of package store/rueidisstore: Sentinel or Redis Cluster
//   - New of package store/goredisstore: the go-redis client that the program has already, also of a cluster
//   - Open of package store/embedded: a Redis inside the process, for development
//   - [NewOn]: any other client
//
// A constructor does not connect, so it succeeds even if Redis is unavailable: see [Store.Ping]. If the
// arguments are wrong, most of them return an error. [New] and [NewOn] return a store whose every use fails with
// that error, and middleware.New returns the error, too.
//
// REDIS.md beside this package says how Redis should be set up.
package store

// The package comment of internal/records tells how a session is kept in Redis.

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// The errors of sessions, to be matched with [errors.Is]. The function Status of package middleware has the HTTP status
// for each.
var (
	// ErrNotFound: there is no such session: its ID is unknown, or it has expired.
	ErrNotFound = records.ErrNotFound
	// ErrGone: the session was ended, or got a new ID, less than a minute ago.
	ErrGone = records.ErrGone
	// ErrMoved: another request has given the session a new ID, by Login, Renew or Remember. So this ID is gone, and the
	// session was not ended with it. The error is also an ErrGone.
	ErrMoved = records.ErrMoved
	// ErrCorrupt: the stored value is not a record that this version can read.
	ErrCorrupt = records.ErrCorrupt
	// ErrConflict: another request has changed the session since it was loaded, or holds it.
	ErrConflict = records.ErrConflict
	// ErrTooLarge: the session is larger than Options.MaxBytes of package middleware.
	ErrTooLarge = records.ErrTooLarge
	// ErrTooManySessions: the user has as many sessions as Options.MaxSessions of package middleware allows.
	ErrTooManySessions = records.ErrTooManySessions
)

// The errors of the session's lock and of Redis, to be matched with [errors.Is]. They equal those of package locker.
var (
	// ErrTimeout: another request has held the session for as long as the request could wait.
	ErrTimeout = locker.ErrTimeout
	// ErrTooManyWaiters: too many requests of this process wait for the session already.
	ErrTooManyWaiters = locker.ErrTooManyWaiters
	// ErrLost: the request has lost its lock, so it cannot save its session any more.
	ErrLost = locker.ErrLost
	// ErrUnavailable: Redis could not be reached, did not reply in time, or refused the command.
	ErrUnavailable = locker.ErrUnavailable
)

// Options of a store. The zero value means the defaults.
type Options struct {
	// Prefix begins every key. Default "latchkey:", at most 512 bytes. It must not contain braces, which mark the
	// part of a key that chooses the slot of a cluster.
	Prefix string
	// Lease is how long a session stays locked after its holder was killed. A live holder extends
	// it. Default 10 s, at least 1 ms, at most 1 year.
	Lease time.Duration
	// Timeout bounds each round trip to Redis: dialling, waiting for a connection, sending, and the reply.
	// Default 2 s, at least 1 ms.
	Timeout time.Duration
	// Encryption hides the content of sessions from everybody with access to Redis. Default: none.
	Encryption Encryption

	// TLS is how [Open] connects by rediss:// and valkeys://: with a private certificate authority, for example.
	// Default: the system's authorities, TLS 1.2 or later. The name to be verified is the URL's host, unless
	// ServerName is set.
	TLS *tls.Config
	// Credentials returns the user, which may be "", and the password for each connection that the store of
	// [Open] makes. It is for credentials that change, such as tokens. Its ctx ends after Timeout. If
	// Credentials is set, the URL must have neither a user nor a password.
	Credentials func(ctx context.Context) (user, password string, err error)
}

// Encryption hides the content of sessions from everybody with access to Redis, its log, its replicas or its
// backups. A record modified or moved without a key is detected and reported as [ErrCorrupt]. IDs, times,
// sizes, and the labels of locks stay readable. An attacker with the right to write to Redis can still end
// sessions, block them, and put back an older record of the same session, even after its end.
//
// To add, replace or remove a key without ending a session, take these steps. Each must be in all processes before
// the next one begins:
//
//   - to begin: Keys with WritePlain; then with AcceptPlain instead; a Lifetime later Keys alone
//   - to rotate: the new key after the old one; then before it; a Lifetime later without the old one
//
// If sessions are remembered for longer than Lifetime, wait that long instead.
type Encryption struct {
	// Keys have at least 32 random bytes each, newest first. They must not be the keys of the cookies. The
	// first key seals records, and all keys open them. Default: none, and records are stored unencrypted.
	Keys [][]byte
	// AcceptPlain also reads records that are not sealed: older records, and any record that an attacker with
	// access to Redis has made up. Set it only during a change.
	AcceptPlain bool
	// WritePlain stores records unsealed, and reads them. Set it while some processes have no keys yet, or will later
	// have none.
	WritePlain bool
}

// A Store connects package middleware with Redis. It is safe for use by any number of goroutines.
type Store struct{ engine *records.Engine }

func init() {
	records.Of = func(st any) *records.Engine { return st.(*Store).engine }
}

// New returns a store that dials by pool's DialContext or Dial, which should have a dial timeout. The store
// takes no connection from the pool, so the pool's size does not matter.
func New(pool *redis.Pool, o Options) *Store {
	return newAt("", "", pool, o)
}

// newAt is New for a pool that dials an address, and selects a database.
func newAt(address, database string, pool *redis.Pool, o Options) *Store {
	if pool == nil {
		return broken("the pool is nil")
	}
	client := transport.NewRedigo(pool, cmp.Or(o.Timeout, locker.DefaultTimeout))
	client.Address, client.Database = address, database
	return NewOn(owned{client}, o)
}

// owned is a transport.Owned.
type owned struct{ *transport.Redigo }

func (c owned) CloseWithStore() error { return c.Close() }

// NewOn returns a store on any client. The client bounds each round trip by its own timeout; Options.Timeout
// should equal it. [Store.Close] does not close the client, unless it is a [transport.Owned].
func NewOn(c transport.Client, o Options) *Store {
	const dialling = "it is only for Open, since a pool or client dials in its own way"
	switch {
	case c == nil:
		return broken("the client is nil")
	case o.TLS != nil:
		return broken("Options.TLS is set: " + dialling)
	case o.Credentials != nil:
		return broken("Options.Credentials is set: " + dialling)
	}
	return &Store{records.New(c, records.Options{
		Prefix: o.Prefix, Lease: o.Lease, Timeout: o.Timeout, Encryption: records.Encryption(o.Encryption),
	})}
}

func broken(why string) *Store { return &Store{records.Broken(errors.New("store: " + why))} }

// Ping reports whether Redis replies, for readiness checks and at start. On a Redis Cluster it succeeds if one
// node replies; but it fails with the stores of [Open] and [New], which do not know clusters. The error wraps
// [ErrUnavailable].
func (s *Store) Ping(ctx context.Context) error { return s.engine.Ping(ctx) }

// Close stops all background work immediately, and closes the store's connections. A client that was given to
// [NewOn] stays open, unless it is a [transport.Owned]. Requests that wait for a session fail with [ErrUnavailable], and
// so do later requests. If the connections are closed, requests that hold a session fail when they save it: let them
// finish first, as [net/http.Server.Shutdown] does. A lock that is still held then, or that a lost reply has left behind,
// expires with its lease. If the client stays open, requests that hold a session save it, and their leases are extended
// until then.
func (s *Store) Close() error { return s.engine.Close() }

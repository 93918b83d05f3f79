package locker

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A Client runs scripts on Redis. It is all that Latchkey asks of a Redis
// library, so that another one, a cluster's say, can take redigo's place.
//
// All keys of a call are in one slot. Eval may run the script more than once
// when a connection breaks, so scripts must be safe to repeat with the same
// arguments. Errors wrap [ErrUnavailable]. ctx bounds the wait for a connection
// and, by its deadline, for the reply; cancelling it does not break off an
// exchange that has begun, because the answer would never be known.
type Client interface {
	Eval(ctx context.Context, s *Script, keys Keys, args ...any) (any, error)
	// Subscribe listens to a channel, on a connection of its own. ctx bounds how
	// long that takes to begin. Errors wrap [ErrUnavailable].
	Subscribe(ctx context.Context, channel string) (Subscription, error)
}

// Keys are the keys of a script: strings, as arguments. To make an argument of a
// string is not free, so whoever uses the same keys again should keep them.
type Keys []any

// A Script is Lua for Redis. It returns an array, a number from 0 to 3, or an error.
type Script struct {
	text   string
	framed string // what a Client of [NewClient] runs; see frame.go
	name   any    // by which Redis knows that, made an argument once because that is not free
}

// NewScript returns the script with the given text.
func NewScript(text string) *Script {
	s := &Script{text: text, framed: framed(text)}
	s.name = hash(s.framed)
	return s
}

// hash returns the name by which Redis knows the script with this text.
func hash(text string) string {
	sum := sha1.Sum([]byte(text)) // Redis's choice, not a matter of security
	return hex.EncodeToString(sum[:])
}

// NewClient returns a Client that uses pool, a few connections of it at once. Each
// exchange takes at most timeout, the wait for a connection included.
func NewClient(pool *redis.Pool, timeout time.Duration) Client {
	return &poolClient{pool: pool, timeout: timeout, lanes: lanes{pool: pool}}
}

type poolClient struct {
	pool    *redis.Pool
	timeout time.Duration
	lanes   lanes
}

// evalError is the error of an Eval. Where maybe is set, the script may have
// run: no reply came, which is not the same as a refusal.
type evalError struct {
	err   error
	maybe bool
}

func (e *evalError) Error() string   { return ErrUnavailable.Error() + ": " + e.err.Error() }
func (e *evalError) Unwrap() []error { return []error{ErrUnavailable, e.err} }

// mayHaveHappened reports whether err leaves open whether Redis did the work.
// The errors of another Client do not tell, so they always do.
func mayHaveHappened(err error) bool {
	var e *evalError
	if errors.As(err, &e) {
		return e.maybe
	}
	return errors.Is(err, ErrUnavailable)
}

// Eval runs s by its hash, and by its text where Redis does not know the hash.
//
// After a restart of Redis the pool is full of dead connections, and each looks
// fine until it is used. So a connection that breaks is no verdict on Redis as
// long as it may be an old one: as many are tried as there are, and then a new one.
func (c *poolClient) Eval(ctx context.Context, s *Script, keys Keys, args ...any) (any, error) {
	if c.pool == nil {
		return nil, &evalError{err: errors.New("the pool is nil")}
	}
	deadline := time.Now().Add(c.timeout)
	patience := deadline
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(deadline) {
		patience = sooner
	}
	all := make([]any, 0, 2+len(keys)+len(args)+1)
	all = append(all, s.name, len(keys))
	all = append(all, keys...)
	all = append(all, args...)
	all = append(all, nil) // the call's number

	maybe := false
	for spare := c.pool.ActiveCount() + 1; ; spare-- {
		f := c.try(ctx, s, all, deadline, patience, maybe)
		if f.err == nil {
			return f.reply, nil
		}
		maybe = maybe || f.maybe
		if !f.broken || spare == 0 {
			return nil, &evalError{err: f.err, maybe: maybe}
		}
	}
}

// try runs s once, by the arguments of EVALSHA, the last of which it sets. again tells
// that an earlier try may have been done, or may be done yet.
func (c *poolClient) try(ctx context.Context, s *Script, args []any, deadline, patience time.Time, again bool) fate {
	call := calls.Add(1)
	if again {
		call = -call
	}
	args[len(args)-1] = call
	f := c.lanes.do(ctx, command{"EVALSHA", args, deadline, patience, call})
	if !isNoScript(f.err) {
		return f
	}
	args = slices.Clone(args)
	args[0] = s.framed
	return c.lanes.do(ctx, command{"EVAL", args, deadline, patience, call})
}

// connect gets a connection from the pool, and waits for one even where the pool
// itself is not set to wait: a holder must always be able to release. doubt tells that
// the pool may refuse the connections that are at hand, and make a new one.
func connect(ctx context.Context, pool *redis.Pool, deadline time.Time, doubt bool) (redis.Conn, error) {
	if !pool.Wait && !doubt && pool.IdleCount() > 0 {
		// One is at hand, so there is no need to pay for a context that ends.
		if conn, err := pool.GetContext(ctx); !errors.Is(err, redis.ErrPoolExhausted) {
			return conn, err
		}
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	backoff := Backoff{Min: time.Millisecond, Max: 10 * time.Millisecond}
	for try := 0; ; try++ {
		conn, err := get(ctx, pool)
		if !errors.Is(err, redis.ErrPoolExhausted) {
			return conn, err
		}
		if pause(ctx, backoff.Delay(try, chance())) != nil {
			return nil, err
		}
	}
}

// get is pool.GetContext. A pool that was closed panics there where ctx ends at the
// same time, as is likely at the end of a program: redigo gives back its place in
// a channel that is closed.
func get(ctx context.Context, pool *redis.Pool) (conn redis.Conn, err error) {
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(runtime.Error); !ok || e.Error() != "send on closed channel" {
				panic(r)
			}
			conn, err = nil, errors.New("the pool is closed")
		}
	}()
	return pool.GetContext(ctx)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// isRefusal tells an answer of Redis from the lack of one.
func isRefusal(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// isNoScript tells that Redis does not know the script of an EVALSHA.
func isNoScript(err error) bool {
	refused, ok := errors.AsType[redis.Error](err)
	return ok && strings.HasPrefix(string(refused), "NOSCRIPT")
}

// Package scripting runs Lua scripts on Redis.
package scripting

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

// The errors of a Runner, to be matched with [errors.Is]. Every error of Redis wraps
// ErrUnavailable.
var (
	// ErrUnavailable: Redis could not be reached, did not answer in time, or
	// refused the command.
	ErrUnavailable = errors.New("redis is unavailable")
	// ErrRefused: nothing was done.
	ErrRefused = errors.New("redis refused it")
)

// A Script is Lua for Redis. It returns an array, a number from 0 to 3, or an error.
type Script struct {
	framed string // what a Runner runs; see frame.go
	name   string // by which Redis knows that
}

// NewScript returns the script with the given text.
func NewScript(text string) *Script {
	s := &Script{framed: framed(text)}
	sum := sha1.Sum([]byte(s.framed)) // Redis's choice, not a matter of security
	s.name = hex.EncodeToString(sum[:])
	return s
}

// A Runner runs scripts.
type Runner struct {
	pool    *redis.Pool
	timeout time.Duration
	lanes   lanes
}

// OverPool returns a Runner that uses pool, a few connections of it at once. Each
// exchange takes at most timeout, the wait for a connection included.
func OverPool(pool *redis.Pool, timeout time.Duration) *Runner {
	return &Runner{pool: pool, timeout: timeout, lanes: lanes{pool: pool}}
}

// evalError is the error of an exchange. Where maybe is set, the script may have
// run: no reply came, which is not the same as a refusal.
type evalError struct {
	err   error
	maybe bool
}

func (e *evalError) Error() string { return ErrUnavailable.Error() + ": " + e.err.Error() }

func (e *evalError) Unwrap() []error {
	if e.maybe {
		return []error{ErrUnavailable, e.err}
	}
	return []error{ErrUnavailable, ErrRefused, e.err}
}

// Ambiguous reports whether err leaves open whether Redis did the work.
func Ambiguous(err error) bool { return errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrRefused) }

// Unanswered reports whether err is that of a Redis that did not answer in time.
func Unanswered(err error) bool { return isTimeout(err) && errors.Is(err, ErrUnavailable) }

// Ping reports whether Redis answers.
func (c *Runner) Ping(ctx context.Context) error {
	_, err := c.Run(ctx, pingScript, nil)
	return err
}

var pingScript = NewScript(`redis.call('PING'); return 1`)

// Run runs s by its hash, and by its text where Redis does not know the hash.
//
// After a restart of Redis the pool is full of dead connections, and each looks
// fine until it is used. So a connection that breaks is no verdict on Redis as
// long as it may be an old one: as many are tried as there are, and then a new one.
func (c *Runner) Run(ctx context.Context, s *Script, keys []string, args ...any) (Reply, error) {
	if c.pool == nil {
		return Reply{}, &evalError{err: errors.New("the pool is nil")}
	}
	deadline := time.Now().Add(c.timeout)
	patience := deadline
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(deadline) {
		patience = sooner
	}
	all := make([]any, 0, 2+len(keys)+len(args)+1)
	all = append(all, s.name, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	all = append(all, args...)
	all = append(all, nil) // the call's number

	maybe := false
	for spare := c.pool.ActiveCount() + 1; ; spare-- {
		f := c.try(ctx, s, all, deadline, patience, maybe)
		if f.err == nil {
			return Reply{f.reply}, nil
		}
		maybe = maybe || f.maybe
		if !f.broken || spare == 0 {
			return Reply{}, &evalError{err: f.err, maybe: maybe}
		}
	}
}

// try runs s once, by the arguments of EVALSHA, the last of which it sets. again tells
// that an earlier try may have been done, or may be done yet.
func (c *Runner) try(ctx context.Context, s *Script, args []any, deadline, patience time.Time, again bool) fate {
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
	for {
		conn, err := get(ctx, pool)
		if !errors.Is(err, redis.ErrPoolExhausted) {
			return conn, err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
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

package locker

import (
	"context"
	_ "embed"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Spin is the lock of the session handler: SET key token NX PX lease, tried
// again after a jittered pause while another process holds it, and released by
// a script that deletes the key only if it still holds the token.
//
// The algorithm is the one told in Redis's own documentation of SET, for one
// Redis. Callers of one process are served in the order they came; between
// processes it is a matter of chance.
type Spin struct {
	guard     Guard
	algorithm Algorithm
	options   Options
}

// NewSpin returns a spin lock on the Redis of pool. What is wrong with o is the
// error of every Lock.
func NewSpin(pool *redis.Pool, o Options) *Spin {
	client := NewClient(pool, orElse(o.Timeout, DefaultTimeout))
	return &Spin{algorithm: SpinAlgorithm(client), options: o}
}

// Lock takes key itself, by the rules of [Locker].
func (s *Spin) Lock(ctx context.Context, key string) (*Lease, error) {
	return s.guard.Lock(ctx, key, s.algorithm, s.options)
}

// SpinAlgorithm returns the algorithm of [Spin], for use with a [Guard] or as
// part of another algorithm.
func SpinAlgorithm(c Client) Algorithm { return spin{c} }

type spin struct{ client Client }

var (
	//go:embed take.lua
	takeText string
	//go:embed extend.lua
	extendText string
	//go:embed release.lua
	releaseText string

	takeScript    = NewScript(takeText)
	extendScript  = NewScript(extendText)
	releaseScript = NewScript(releaseText)
)

func (s spin) Take(ctx context.Context, key, token string, lease time.Duration) (Attempt, error) {
	return attempt(s.client.Eval(ctx, takeScript, []string{key}, token, lease.Milliseconds()))
}

func (s spin) Extend(ctx context.Context, key, token string, d time.Duration) error {
	return verdict(s.client.Eval(ctx, extendScript, []string{key}, token, max(1, d.Milliseconds())))
}

func (s spin) Release(ctx context.Context, key, token string, after time.Duration) error {
	return verdict(s.client.Eval(ctx, releaseScript, []string{key}, token, after.Milliseconds()))
}

func (spin) Valid(lease time.Duration) time.Duration { return lease }

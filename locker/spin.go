package locker

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Spin is the lock of the session handler: SET key token NX PX lease, and released
// by a script that deletes the key only if it still holds the token.
//
// The algorithm is the one told in Redis's own documentation of SET, for one
// Redis. Callers of one process are served in the order they came. So are the
// processes that wait: each has its place in a queue, and is told when its turn
// has come; see [Relay]. Where Redis does not permit that, they try again after
// a jittered pause.
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
func SpinAlgorithm(c Client) Relay { return spin{c, newBell(c)} }

type spin struct {
	client Client
	bell   *bell
}

var (
	//go:embed queue.lua
	queueText string
	//go:embed take.lua
	takeText string
	//go:embed extend.lua
	extendText string
	//go:embed release.lua
	releaseText string
	//go:embed pass.lua
	passText string
	//go:embed quit.lua
	quitText string

	takeScript    = NewQueueScript(takeText)
	extendScript  = NewScript(extendText)
	releaseScript = NewQueueScript(releaseText)
	passScript    = NewQueueScript(passText)
	quitScript    = NewQueueScript(quitText)
)

// NewQueueScript returns a script that may call the functions of queue.lua, from the
// line on that includes it.
func NewQueueScript(text string) *Script {
	return NewScript(strings.Replace(text, "-- include queue.lua\n", queueText, 1))
}

func (s spin) Take(ctx context.Context, key, token string, lease time.Duration) (Attempt, error) {
	return s.Queue(ctx, key, token, "", lease)
}

func (s spin) Queue(ctx context.Context, key, token, place string, lease time.Duration) (Attempt, error) {
	return attempt(s.eval(ctx, takeScript, key, token, lease.Milliseconds(), place))
}

func (s spin) Extend(ctx context.Context, key, token string, d time.Duration) error {
	return verdict(s.client.Eval(ctx, extendScript, Keys{key}, token, max(1, d.Milliseconds())))
}

func (s spin) Release(ctx context.Context, key, token string, after time.Duration) error {
	return verdict(s.eval(ctx, releaseScript, key, token, after.Milliseconds()))
}

func (s spin) Quit(ctx context.Context, key, place string) error {
	return verdict(s.eval(ctx, quitScript, key, place))
}

func (s spin) Pass(ctx context.Context, key, from, to string, lease time.Duration) (others bool, err error) {
	return passed(s.eval(ctx, passScript, key, from, to, lease.Milliseconds()))
}

func (spin) Valid(lease time.Duration) time.Duration { return lease }

func (s spin) doorbell() *bell { return s.bell }

// eval runs a script on key and the queue beside it. If rights to the queue's key are
// missing, it does without.
func (s spin) eval(ctx context.Context, script *Script, key string, args ...any) (any, error) {
	reply, err := s.client.Eval(ctx, script, Keys{key, queueKey(key)}, args...)
	if refused, ok := errors.AsType[redis.Error](err); ok && keyRefused(string(refused)) {
		return s.client.Eval(ctx, script, Keys{key}, args...)
	}
	return reply, err
}

// keyRefused reports whether Redis says that a user may not use a key of a command.
func keyRefused(err string) bool {
	return strings.HasPrefix(err, "NOPERM ") && strings.Contains(err, " key")
}

package locker

import (
	"context"
	_ "embed"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// Timestamp is the lock whose value is the time at which it expires, in Unix milliseconds. It was in Redis's
// documentation of SETNX before SET had options, and many programs take it by SETNX, GET and GETSET. Timestamp
// and such programs exclude each other:
//
//   - If there is no value: SETNX with now + lease.
//   - A value in the past is a stale lock: GETSET it with now + lease. The caller that gets a value in the past
//     has won. A stale lock is never deleted, since a second caller would delete the winner's lock.
//   - To release, DEL it, unless it is stale: then it may belong to another holder.
//
// Here each of these is one script. Still, programs that take the lock step by step may change the value of a
// winner, as timestamp.lua explains. A note in a second key identifies the winner. That key is {<key>}.owner or, if
// the key has a hash tag, <key>:owner; noteKey has a third form for keys with other braces. Other programs need not
// know it. Until the winner extends its lease, the lock may end when a loser's lease would. So all programs should use
// leases of about the same length.
//
// Redis's clock counts, so the clocks of hosts need not agree. To share a lock with programs that write the
// time of their own host, set Options.LocalClock. No clock may jump, since the lock expires when a clock says
// so.
//
// Like any lock by time alone, it is not a fence: a holder cannot be distinguished from a later holder. Call
// [Lease.Extend] before a step that matters.
type Timestamp struct{ lock *lock }

// NewTimestamp returns a timestamp lock on the Redis of pool.
func NewTimestamp(pool *redis.Pool, o Options) *Timestamp {
	a := timestamp{runner: runnerOn(pool, o.Timeout), localClock: o.LocalClock}
	return &Timestamp{on(pool, newLock(own{Algorithm: a}, nil, o))}
}

// Lock acquires key by the rules of [Locker]. If the value is not a time in Unix milliseconds, it returns
// [ErrForeign] at once.
func (t *Timestamp) Lock(ctx context.Context, key string) (*Lease, error) {
	return t.lock.Lock(ctx, key)
}

// TimestampAlgorithm returns the algorithm of [Timestamp] on any client, for [New]. It uses the clock of Redis or, in a
// Locker of New, that of Options.LocalClock.
func TimestampAlgorithm(c transport.Client) Algorithm {
	if c == nil {
		return missing{what: "the Client of TimestampAlgorithm"}
	}
	return timestamp{runner: scripting.NewRunner(c, DefaultTimeout)}
}

// timestamp is the algorithm of a Timestamp.
type timestamp struct {
	runner     *scripting.Runner
	localClock bool
}

//go:embed golden/timestamp.lua
var timestampText string

var timestampScript = scripting.NewScript(timestampText)

func (t timestamp) Take(ctx context.Context, key, token string, span time.Duration) (Attempt, error) {
	found, err := lease.ReadTake(t.run(ctx, key, "take", token, span))
	if found.Holder == lease.Unnamed { // the holder left no note
		found.Holder = ""
	}
	return Attempt{Taken: found.Taken, Holder: found.Holder, Left: found.Left}, err
}

func (t timestamp) Extend(ctx context.Context, key, token string, d time.Duration) error {
	return lease.ReadReply(t.run(ctx, key, "extend", token, max(d, time.Millisecond)))
}

func (t timestamp) Release(ctx context.Context, key, token string, after time.Duration) error {
	return lease.ReadReply(t.run(ctx, key, "release", token, after))
}

func (t timestamp) run(ctx context.Context, key, step, token string, d time.Duration) (scripting.Reply, error) {
	now := "" // ask Redis
	if t.localClock {
		now = strconv.FormatInt(time.Now().UnixMilli(), 10)
	}
	return t.runner.Run(ctx, timestampScript, scripting.Keys{key, noteKey(key)}, step, token, d.Milliseconds(), now)
}

// noteKey returns the key of the note. It is in the slot of key. No two keys share a note, not even k and {k}.
func noteKey(key string) string {
	switch tag, own := lease.HashTag(key); {
	case own:
		return key + ":owner"
	case tag == key:
		return "{" + key + "}.owner"
	default:
		return "{" + tag + "}" + key + "}.owner"
	}
}

// Valid returns lease: there is one clock, or the clocks agree.
func (timestamp) Valid(lease time.Duration) time.Duration { return lease }

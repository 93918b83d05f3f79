package locker

import (
	"context"
	"strings"
	"time"
)

// A Relay is an Algorithm whose lock goes from one holder to the next without
// being free in between.
//
// Between the callers of one process it is passed: one exchange, or none (see
// [Lease.HandOver]). Between processes there is a queue in Redis, beside the
// lock. It holds one place for each process, however many of its callers wait, and
// whichever of them give up meanwhile; see place.go. Whoever releases the lock gives it to the first place and tells that process,
// which then takes it over for one of its callers. bell.go tells how it is told.
//
// The message is a hint and nothing else: what counts is the lock's value, which
// the process asks for when it is told, and now and then without that. So a
// message that is lost costs a little time, and one too many does nothing. A
// process that has died does not listen and is passed over at once; one that listens
// and does not answer is passed over after a second.
//
// How long one process may pass the lock around is told by turn.go.
type Relay interface {
	Algorithm
	// Queue is Take, but where another has the lock it puts place at the end of
	// the queue, unless it is there already. Once the turn has come to place,
	// Queue succeeds.
	Queue(ctx context.Context, key, token, place string, lease time.Duration) (Attempt, error)
	// Quit takes place out of the queue; if the turn had come to it, the next
	// one has it.
	Quit(ctx context.Context, key, place string) error
	// Pass gives the lock from one token to another, for the time of a lease.
	// others tells whether other processes wait. Errors as with Extend.
	Pass(ctx context.Context, key, from, to string, lease time.Duration) (others bool, err error)
	// doorbell is implemented by embedding the Relay of [SpinAlgorithm].
	doorbell() *bell
}

// queueKey is in the slot of key, and begins with it where it can, so that rights
// on a prefix include the queue. No two keys have the same one. What is in the first
// braces chooses the slot; without any, the whole key. If that has a } in it, no queue
// can be in its slot, and a cluster refuses it.
func queueKey(key string) string {
	if _, rest, _ := strings.Cut(key, "{"); strings.Index(rest, "}") > 0 {
		return key + ".queue"
	}
	if strings.ContainsAny(key, "{}") {
		return "{" + key + "}queue" // with a dot it could be that of {key}
	}
	return key + ".queue{" + key + "}"
}

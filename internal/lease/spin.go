package lease

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// WholeLease is part of algorithms whose holders may rely on all of a lease.
type WholeLease struct{}

// Valid returns lease.
func (WholeLease) Valid(lease time.Duration) time.Duration { return lease }

func (WholeLease) isWhole() {}

// Spin is the algorithm of the spin lock, a [Queue].
type Spin struct {
	WholeLease
	Runner *scripting.Runner
}

//go:embed golden
var texts embed.FS

var (
	takeScript    = scripting.Golden(texts, "take")
	extendScript  = scripting.Golden(texts, "extend")
	releaseScript = scripting.Golden(texts, "release")
	passScript    = scripting.Golden(texts, "pass")
	quitScript    = scripting.Golden(texts, "quit")
)

func (s Spin) Take(ctx context.Context, key, token, place string, span time.Duration) (Attempt, error) {
	return Taken(s.run(ctx, takeScript, key, token, span.Milliseconds(), place))
}

func (s Spin) Extend(ctx context.Context, key, token string, d time.Duration) error {
	return Verdict(s.Runner.Run(ctx, extendScript, scripting.Keys{key}, token, max(1, d.Milliseconds())))
}

func (s Spin) Release(ctx context.Context, key, token string, after time.Duration) error {
	return Verdict(s.run(ctx, releaseScript, key, token, after.Milliseconds()))
}

func (s Spin) Quit(ctx context.Context, key, place string) error {
	return Verdict(s.run(ctx, quitScript, key, place))
}

func (s Spin) Pass(ctx context.Context, key, from, to string, span time.Duration) (others bool, err error) {
	reply, err := s.run(ctx, passScript, key, from, to, span.Milliseconds())
	if err = Verdict(reply, err); err != nil {
		return false, err
	}
	n, ok := reply.IntAt(1)
	if !ok {
		return false, Unexpected(reply)
	}
	return n != 0, nil
}

// run runs a script on key and its queue. If rights to the queue's key are
// missing, it does without.
func (s Spin) run(ctx context.Context, script *scripting.Script, key string, args ...any) (scripting.Reply, error) {
	reply, err := s.Runner.Run(ctx, script, scripting.Keys{key, queueKey(key)}, args...)
	if keyRefused(err) {
		return s.Runner.Run(ctx, script, scripting.Keys{key}, args...)
	}
	return reply, err
}

// keyRefused reports whether err is Redis's answer that a user may not use a key of a command.
func keyRefused(err error) bool {
	if !errors.Is(err, transport.ErrRefused) {
		return false
	}
	_, words, found := strings.Cut(err.Error(), "NOPERM ")
	return found && strings.Contains(words, " key")
}

// queueKey is in the slot of key, and begins with it where it can, so that rights on a prefix include
// the queue. No two keys have the same one.
func queueKey(key string) string {
	switch tag, own := HashTag(key); {
	case own:
		return key + ".queue"
	case !strings.Contains(key, "{"):
		return key + ".queue{" + tag + "}"
	case tag == key:
		return "{" + key + "}queue" // with a dot it could be that of {key}
	default:
		return "{" + tag + "}" + key + "}queue"
	}
}

// What the scripts of a lock answer, as the first value of their replies.
const (
	stateDone    = 1
	stateLost    = 0 // another has it: its token and the time left in ms may follow
	stateExpired = -1
	stateForeign = -2
	stateChanged = -3 // this and all below: of the record next to the lock
	stateEnded   = -4
	stateGone    = -5
)

// Verdict reads the reply to an Extend or a Release.
func Verdict(reply scripting.Reply, err error) error {
	if err != nil {
		return err
	}
	return VerdictAt(reply, 0)
}

// VerdictAt is Verdict where the answer begins with value i.
func VerdictAt(reply scripting.Reply, i int) error {
	state, ok := reply.IntAt(i)
	switch {
	case !ok:
	case state == stateDone:
		return nil
	case state == stateLost:
		token, known := reply.TextAt(i + 1)
		if !known {
			return ErrLost
		}
		return lostTo(token)
	case state == stateExpired:
		return ErrExpired
	case state == stateForeign:
		return ErrForeign
	case state == stateChanged:
		return errChanged
	case state == stateEnded:
		return ErrEnded
	case state == stateGone:
		return errGone
	}
	return Unexpected(reply)
}

// Taken reads the reply to a Take.
func Taken(reply scripting.Reply, err error) (Attempt, error) {
	if err != nil {
		return Attempt{}, err
	}
	switch state, ok := reply.IntAt(0); {
	case ok && state == stateDone:
		return Attempt{Taken: true}, nil
	case ok && state == stateLost:
		return Held(reply)
	case ok && state == stateForeign:
		return Attempt{}, ErrForeign
	default:
		return Attempt{}, Unexpected(reply)
	}
}

// Held reads what a script answers about a lock that another has: behind the first value its
// token and, where they are known, the time left in ms and the result of joining the queue.
func Held(reply scripting.Reply) (Attempt, error) {
	holder, ok1 := reply.TextAt(1)
	left, ok2 := reply.IntAt(2)
	joined, ok3 := reply.IntAt(3)
	if n := reply.Len(); !ok1 || n > 2 && !ok2 || n > 3 && !ok3 {
		return Attempt{}, Unexpected(reply)
	}
	found := HeldBy(holder)
	found.Left, found.Queued, found.Joined = time.Duration(left)*time.Millisecond, joined > 0, joined > 1
	if left < 0 {
		found.Left = forever
	}
	return found, nil
}

// HeldBy is what a try has found that found a value in the lock.
func HeldBy(holder string) Attempt {
	switch {
	case isPlace(holder): // it is being given to another process
		holder = ""
	case holder == "":
		holder = Nameless
	}
	return Attempt{Holder: holder}
}

// Nameless is the Holder of a lock whose value is empty. That is no token, so it is foreign.
const Nameless = " "

// Unexpected is the error of a reply that no script of ours gives. Since the reply may hold a
// secret, it is not part of the error.
func Unexpected(reply scripting.Reply) error {
	return fmt.Errorf("%w: unexpected reply of a script, with %d values", ErrUnavailable, reply.Len())
}

package lease

import (
	"context"
	"embed"
	"errors"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// Spin is the algorithm of the spin lock, a [Queue].
type Spin struct{ Runner *scripting.Runner }

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
	return ReadTake(s.run(ctx, takeScript, key, token, span.Milliseconds(), place))
}

func (s Spin) Extend(ctx context.Context, key, token string, d time.Duration) error {
	return ReadReply(s.Runner.Run(ctx, extendScript, scripting.Keys{key}, token, max(1, d.Milliseconds())))
}

func (s Spin) Release(ctx context.Context, key, token string, after time.Duration) error {
	return ReadReply(s.run(ctx, releaseScript, key, token, after.Milliseconds()))
}

func (s Spin) Quit(ctx context.Context, key, place string) error {
	return ReadReply(s.run(ctx, quitScript, key, place))
}

func (s Spin) Pass(ctx context.Context, key, from, to string, span time.Duration) (others bool, err error) {
	reply, err := s.run(ctx, passScript, key, from, to, span.Milliseconds())
	err = ReadReply(reply, err)
	if err != nil {
		return false, err
	}
	n, ok := reply.IntAt(1)
	if !ok {
		return false, Unexpected(reply)
	}
	return n != 0, nil
}

// run runs a script on key and its queue. If the user has no rights to the queue's key, the script does without the
// queue.
func (s Spin) run(ctx context.Context, script *scripting.Script, key string, args ...any) (scripting.Reply, error) {
	reply, err := s.Runner.Run(ctx, script, scripting.Keys{key, queueKey(key)}, args...)
	if keyRefused(err) {
		return s.Runner.Run(ctx, script, scripting.Keys{key}, args...)
	}
	return reply, err
}

// keyRefused reports whether Redis has refused a command since the user has no rights to one of its keys.
func keyRefused(err error) bool {
	if !errors.Is(err, transport.ErrRefused) {
		return false
	}
	_, words, found := strings.Cut(err.Error(), "NOPERM ")
	return found && strings.Contains(words, " key")
}

// queueKey returns the key of the queue. It is in the slot of key. If possible, it begins with key, so that rights on a
// prefix include the queue. No two keys have the same one.
func queueKey(key string) string {
	switch tag, own := HashTag(key); {
	case own:
		return key + ".queue"
	case !strings.Contains(key, "{"):
		return key + ".queue{" + tag + "}"
	case tag == key:
		return "{" + key + "}queue" // with a dot it could be the queue of {key}
	default:
		return "{" + tag + "}" + key + "}queue"
	}
}

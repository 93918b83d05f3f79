package scripting

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/lua"
	"github.com/a2139e8d/latchkey/locker/transport"
	"go.uber.org/goleak"
)

// TestMain checks that no round trip leaves a goroutine behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// A fake is a Client that runs scripts which return their first argument, in an array. It knows a script once it
// has got the text.
type fake struct {
	do do // nil: next

	mu     sync.Mutex // guards the rest
	calls  [][]transport.Command
	known  map[any]bool
	resets int
}

var (
	errBroken  = fmt.Errorf("%w: the connection broke", transport.ErrUnavailable)
	errSilent  = fmt.Errorf("%w: no reply: %w", transport.ErrUnavailable, os.ErrDeadlineExceeded)
	errNobody  = errors.New("connection refused")
	errRefused = fmt.Errorf("%w: %w", transport.ErrRefused, errNobody)
)

func (f *fake) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	f.mu.Lock()
	var copies []transport.Command
	for _, command := range commands {
		copies = append(copies, append(transport.Command{key}, command...))
	}
	f.calls = append(f.calls, copies)
	n := len(f.calls)
	f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", transport.ErrRefused, err)
	}
	next := func() ([]any, error) {
		var replies []any
		for _, command := range commands {
			replies = append(replies, f.run(command))
		}
		return replies, nil
	}
	if f.do != nil {
		return f.do(exchange{ctx, n, key, commands, next})
	}
	return next()
}

func (f *fake) run(command transport.Command) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch command[0] {
	case "EVALSHA":
		if !f.known[command[1]] {
			return errors.New("NOSCRIPT No matching script. Please use EVAL.")
		}
	case "EVAL":
		if f.known == nil {
			f.known = make(map[any]bool)
		}
		f.known[echo.hash] = true
	default:
		return fmt.Sprint(command...)
	}
	args := argsOf(command)
	return []any{args[len(args)-1], args[0]}
}

func (f *fake) Subscribe(context.Context, string) (transport.Subscription, error) {
	return nil, errRefused
}

func (f *fake) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resets++
}

// A do replaces [fake.Do].
type do = func(x exchange) ([]any, error)

// An exchange is the nth call of Do, counted from 1. next does what Do normally does.
type exchange struct {
	ctx      context.Context
	n        int
	key      string
	commands []transport.Command
	next     func() ([]any, error)
}

// knows makes a fake that already has the script.
func knows(do do) *fake { return &fake{do: do, known: map[any]bool{echo.hash: true}} }

// A refusal replaces the last reply.
type refusal string

// meets gives the outcomes of the first exchanges: an error in place of replies, a refusal, replies, or nil for
// the normal outcome. All later exchanges succeed.
func meets(tries ...any) do {
	return func(x exchange) ([]any, error) {
		if x.n > len(tries) {
			return x.next()
		}
		switch try := tries[x.n-1].(type) {
		case error:
			return nil, try
		case refusal:
			replies, err := x.next()
			replies[len(replies)-1] = errors.New(string(try))
			return replies, err
		case []any:
			return try, nil
		default:
			return x.next()
		}
	}
}

// always gives all exchanges the same outcome.
func always(try any) do { return meets(slices.Repeat([]any{try}, 1000)...) }

var echo = NewScript(inFrame("return {ARGV[2]}"))

// inFrame returns a script as Redis runs it.
func inFrame(script string) string {
	text, err := lua.Whole(script, lua.Parts())
	if err != nil {
		panic(err)
	}
	return text
}

// argsOf returns the arguments of a script, beginning with the number of the call.
func argsOf(command transport.Command) []any { return command[3+command[2].(int):] }

// wantRepetitions checks that exactly the exchanges from this one on have the number of a repetition. It counts
// from 1.
func (f *fake) wantRepetitions(t *testing.T, from int) {
	t.Helper()
	for i, commands := range f.calls {
		last := commands[len(commands)-1]
		if number := argsOf(last[1:])[0].(int64); number < 0 != (i+1 >= from) {
			t.Errorf("exchange %d has the number %d", i+1, number)
		}
	}
}

const never = 1 << 30

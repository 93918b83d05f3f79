package scripting

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/locker/transport"
	"go.uber.org/goleak"
)

// TestMain checks that no exchange leaves a goroutine behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// A fake is a Client that runs scripts which return their first argument, in an array. It does not
// know them until it has got their text.
type fake struct {
	// do is called in place of Do, for its nth call from 1 on. next is what Do does otherwise.
	do func(n int, commands []transport.Command, next func() ([]any, error)) ([]any, error)

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
		return f.do(n, commands, next)
	}
	return next()
}

func (f *fake) run(command transport.Command) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	call := command[len(command)-1]
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
	return []any{command[len(command)-2], call}
}

func (f *fake) Subscribe(context.Context, string) (transport.Subscription, error) {
	return nil, errRefused
}

func (f *fake) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resets++
}

// knows makes a fake that knows the script.
func knows(do func(n int, commands []transport.Command, next func() ([]any, error)) ([]any, error)) *fake {
	return &fake{do: do, known: map[any]bool{echo.hash: true}}
}

var echo = NewScript("return {ARGV[1]}")

// number is the number of the nth call, from 1 on.
func (f *fake) number(n int) int64 {
	commands := f.calls[n-1]
	last := commands[len(commands)-1]
	return last[len(last)-1].(int64)
}

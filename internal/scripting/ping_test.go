package scripting

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

func TestPing(t *testing.T) {
	t.Parallel()
	loading := errors.New("LOADING Redis is loading the dataset in memory")
	f := knows(func(n int, commands []transport.Command, _ func() ([]any, error)) ([]any, error) {
		return [][]any{{"PONG"}, {loading}, nil}[n-1], []error{nil, nil, errSilent}[n-1]
	})
	r := NewRunner(f, time.Minute)
	if err := r.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := r.Ping(t.Context()); !errors.Is(err, loading) || !errors.Is(err, transport.ErrRefused) {
		t.Error(err)
	}
	if err := r.Ping(t.Context()); !errors.Is(err, errSilent) || !Unanswered(err) {
		t.Error(err)
	}
}

// A node of a cluster serves some of the keys. A client that does not know clusters gets an error
// for the others, and it says so; what else may be wrong with a key does not matter.
func TestPingFindsACluster(t *testing.T) {
	t.Parallel()
	for reply, want := range map[error]bool{
		errors.New("MOVED 3999 127.0.0.1:6381"): true,
		errors.New("NOPERM no right to GET"):    false,
		errSilent:                               false,
	} {
		f := knows(func(_ int, commands []transport.Command, _ func() ([]any, error)) ([]any, error) {
			switch command := commands[0]; {
			case command[0] == "PING":
				return []any{"PONG"}, nil
			case command[0] != "GET" || command[1] != "c":
				return []any{nil}, nil
			case reply == errSilent:
				return nil, reply
			}
			return []any{reply}, nil
		})
		err := NewRunner(f, time.Minute).Ping(t.Context(), "a", "b", "c", "d")
		if want != (errors.Is(err, reply) && errors.Is(err, transport.ErrRefused) && strings.Contains(err.Error(), "cluster")) || !want && err != nil {
			t.Errorf("%v: %v", reply, err)
		}
		if len(f.calls) != 5 {
			t.Errorf("%d exchanges", len(f.calls))
		}
	}
}

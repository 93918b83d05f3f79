package scripting

import (
	"context"
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

// Of a cluster one node has to answer, whichever that is, and it is asked for with the key of a slot.
func TestPingOfACluster(t *testing.T) {
	t.Parallel()
	for alive, want := range map[string]error{"c": nil, "none": errSilent} {
		f := &keyed{fake: knows(nil), alive: alive, hung: make(chan struct{})}
		if err := NewRunner(f, time.Minute).Ping(t.Context(), "a", "b", "c", "d"); !errors.Is(err, want) {
			t.Errorf("%s: %v", alive, err)
		}
		close(f.hung)
	}
}

// A keyed client reaches the node of one key. That of another hangs, as long as one is there.
type keyed struct {
	*fake
	alive string
	hung  chan struct{}
}

func (*keyed) IsCluster() bool { return true }
func (*keyed) SubscribeShard(context.Context, string) (transport.Subscription, error) {
	return nil, errRefused
}
func (k *keyed) Do(_ context.Context, key string, _ ...transport.Command) ([]any, error) {
	if key == k.alive {
		return []any{"PONG"}, nil
	}
	if key == "d" && k.alive != "none" {
		<-k.hung
	}
	return nil, errSilent
}

// A connection that the server has closed since it was idle is none that is missing.
func TestPingOverAnIdleConnection(t *testing.T) {
	t.Parallel()
	f := knows(func(n int, _ []transport.Command, _ func() ([]any, error)) ([]any, error) {
		return [][]any{nil, {"PONG"}}[n-1], []error{transport.ErrUnavailable, nil}[n-1]
	})
	if err := NewRunner(f, time.Minute).Ping(t.Context()); err != nil || len(f.calls) != 2 {
		t.Errorf("%v after %d exchanges", err, len(f.calls))
	}
}

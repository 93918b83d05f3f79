// Package scripting runs Lua scripts on Redis, over any [transport.Client].
//
//   - A round trip is commands and a script behind them, sent as one write. A plain one has no script.
//   - A try is one sending of a round trip, and an exchange is what an observer is told of it. If its connection
//     breaks, a round trip with a script is tried again. So scripts must be safe to repeat with the same arguments. A
//     plain one is not: its caller decides what to send then, as take.go, load.go, alive.go and user_list.go do in
//     package records.
//   - A refusal is an error that Redis replies. Redis defers a command if it refuses the command now, but will
//     execute it soon.
//   - A call has a number, which comes back in its reply. A reply with another number is stray.
//   - A round trip that has failed may have been done, unless its error wraps [transport.ErrRefused].
//
// roundtrip.go sends scripts and plain commands, and client.go is the border to the client. reply.go numbers the
// calls, and reads their replies. deferral.go waits for what is deferred. errors.go has the errors, which all wrap
// [transport.ErrUnavailable]. observe.go tells an observer of each try.
package scripting

import (
	"context"
	"crypto/sha1"
	"embed"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A Script is Lua for Redis, in the frame of package lua. It returns an array, a number from 0 to 3, or an error.
// Redis knows a script by its hash.
type Script struct {
	text string
	hash any    // a string, as an argument
	name string // for observers
}

// NewScript returns the script with the given text.
func NewScript(text string) *Script {
	return &Script{text: text, hash: fmt.Sprintf("%x", sha1.Sum([]byte(text)))} // SHA-1 is Redis's choice; it need not be secure
}

// Golden returns a script of the directory golden. It panics if there is none with that name.
func Golden(files embed.FS, name string) *Script {
	text, err := files.ReadFile("golden/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	s := NewScript(string(text))
	s.name = name
	return s
}

// A Runner may be used by any number of goroutines at once.
type Runner struct {
	client  transport.Client
	timeout time.Duration
	cluster transport.ClusterClient // nil: the client does not know clusters
	routed  transport.RoutedClient  // nil: the client knows no routes
	resets  atomic.Int64            // how many times the connections were given up
	bounds  bool                    // timeout bounds the first try, too, since the client may be more patient

	observer atomic.Pointer[func(context.Context, Exchange)] // nil: none
}

// NewRunner returns a runner whose round trips take at most timeout each. It should be the client's own timeout.
func NewRunner(c transport.Client, timeout time.Duration) *Runner {
	cluster, _ := c.(transport.ClusterClient)
	routed, _ := c.(transport.RoutedClient)
	return &Runner{client: c, timeout: timeout, cluster: cluster, routed: routed}
}

// Keys are strings, as the []any that clients want: to convert them for each call costs time.
type Keys []any

// Within returns a runner on the same client, whose Run takes at most timeout, even if the client is more patient.
func (r *Runner) Within(timeout time.Duration) *Runner {
	return &Runner{client: r.client, timeout: timeout, cluster: r.cluster, routed: r.routed, bounds: true}
}

// Run runs a script.
func (r *Runner) Run(ctx context.Context, s *Script, keys Keys, args ...any) (Reply, error) {
	if r.bounds {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.timeout)
		defer cancel()
	}
	_, reply, err := r.RoundTrip(ctx, RoundTrip{Script: s, Keys: keys, Args: args})
	return reply, err
}

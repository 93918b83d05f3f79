// Package app is one process of a web application that keeps sessions: the same
// application for every library that is measured, so that nothing else differs.
//
//   - peer.go: what is measured.
//   - latchkey.go, scs.go, gorilla.go: the session libraries.
//   - locked.go: scs with a lock around each request, which is what a program
//     does that needs one today. spin.go, redislock.go, redsync.go and
//     rueidislock.go are those locks.
//   - handler.go: what the application answers.
//   - alone.go: a lock without any session.
//   - stats.go: what it has cost.
//   - profile.go: for whoever wants to make it cheaper.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"time"
)

// Env is the environment variable that makes a process of the benchmark one of
// the application. Its value is a Config as JSON.
const Env = "LATCHKEY_BENCH_APP"

// A Config says what a process serves. All processes of one application have
// the same.
type Config struct {
	Peer    string // its name
	Redis   string // host:port
	Key     []byte // signs cookies
	Profile string // a CPU profile is written to this file, if there is one
}

// liveHeap stands for the data that a real application keeps in memory. Without any,
// the garbage collector would run as often as in no real program: every few
// megabytes, each time over the stacks of all requests that wait. It is the same for
// every peer.
const liveHeap = 64 << 20

// Main serves until in ends, which is when the parent closes it or dies. It
// writes the address that it listens at to out, as one line.
func Main(config string, in io.Reader, out io.Writer) (err error) {
	var c Config
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return fmt.Errorf("%s: %w", Env, err)
	}
	peer, ok := Find(c.Peer)
	if !ok {
		return fmt.Errorf("%s: there is no peer %q", Env, c.Peer)
	}
	heap := make([]byte, liveHeap) // never touched, so it takes no memory
	defer runtime.KeepAlive(heap)
	stop, err := profile(c.Profile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	b, err := peer.open(c)
	if err != nil {
		return err
	}
	defer b.close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: newHandler(b), ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, in) // however it ends, it has ended
		_ = server.Close()             // what is under way is of no use any more
	}()
	if _, err := fmt.Fprintln(out, listener.Addr()); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Run is Main on the streams of this process, if it is to be one of the
// application. Otherwise it returns at once.
func Run() {
	config, ok := os.LookupEnv(Env)
	if !ok {
		return
	}
	if err := Main(config, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "bench: app: %v\n", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A backend is a peer at work.
type backend struct {
	// serve returns a handler that lets work use the session of the request,
	// saves it, and answers with the number that work returns.
	serve func(work func(*http.Request, values) int) http.Handler
	// lock is the peer's lock without any session; nil where it has none.
	lock  lockFunc
	close func()
}

// A lockFunc takes the lock of a key, for which it waits until ctx ends, and
// returns what gives it back.
type lockFunc func(ctx context.Context, key string) (unlock func() error, err error)

// values are what one session holds.
type values interface {
	get(key string) int // absent is 0
	put(key string, v any)
	size() int // the number of keys
}

// Package app is one process of a web application that keeps sessions. The application is the same for every
// library measured, so that only the library differs.
//
//   - latchkey.go, stores.go: the session libraries. floor.go: no library. observed.go: Latchkey with observers.
//   - locks.go: scs with a lock around each request, as programs that need a lock do today; and the locks.
//   - handler.go: the application's responses, and what they have cost.
//   - alone.go: a lock without sessions.
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
	"runtime/pprof"
	"slices"
	"time"
)

// A Peer is one way to keep sessions.
type Peer struct {
	Name  string // for the command line
	Title string // for tables
	Locks bool   // the peer promises to lose nothing
	Lock  string // the name of its lock, if the lock can be used without sessions
	// Observed: it shows what an observer of Latchkey costs, and is only measured if it is named.
	Observed bool
	Share    float64 // how fast it must be at least, compared with Beside; 0: no rule
	Beside   string  // the name of a peer
	open     func(Config) (backend, error)
}

// The names of the peers with which others are compared.
const (
	Latchkey    = "latchkey"
	SCS         = "scs" // has no lock
	Rueidislock = "rueidislock"
	Floor       = "floor" // has no sessions
)

// Peers returns all peers.
func Peers() []Peer {
	return append([]Peer{
		{Name: Latchkey, Title: "Latchkey", Locks: true, Lock: "locker.NewSpin", open: openLatchkey},
		{Name: SCS, Title: "scs + goredisstore", open: openSCS},
		{Name: "gorilla", Title: "gorilla + redistore", open: openGorilla},
		{Name: Rueidislock, Title: "scs + rueidislock", Locks: true, Lock: "rueidislock", open: locked(newRueidislock)},
		{Name: "redsync", Title: "scs + redsync", Locks: true, Lock: "redsync", open: locked(newRedsync)},
		{Name: "redislock", Title: "scs + redislock", Locks: true, Lock: "redislock", open: locked(newRedislock)},
		{Name: "spin1", Title: "scs + spin, 1 ms", Locks: true, open: locked(newSpin(time.Millisecond))},
		{Name: "spin200", Title: "scs + spin, 200 ms", Locks: true, open: locked(newSpin(200 * time.Millisecond))},
		{Name: Floor, Title: "no sessions: the floor", open: openFloor},
	}, observedPeers()...)
}

const (
	// connections is the number of connections to Redis that a process may use.
	connections = 64
	// endless is how long a request waits for its session or a connection: no peer gives up before the
	// benchmark does.
	endless = 2 * time.Minute
	// lease is how long a lock outlives a killed holder.
	lease = 10 * time.Second
	// liveHeap stands for the data that a real application keeps in memory. Without such data, the garbage
	// collector would run every few megabytes, each time over the stacks of all waiting requests.
	liveHeap = 64 << 20
)

// Env is the environment variable that turns a process of the benchmark into one of the application. Its
// value is a Config as JSON.
const Env = "LATCHKEY_BENCH_APP"

// A Config says what a process serves. All processes of one application have the same Config.
type Config struct {
	Peer    string // its name
	Redis   string // host:port
	Key     []byte // signs cookies
	Bare    bool   // without liveHeap
	Profile string // if not empty, the file for a CPU profile
}

// Run serves and does not return if this process must be one of the application. Otherwise Run returns at
// once.
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

// Main serves until in ends, because the parent has closed it or died. Main writes its listen address to out,
// as one line.
func Main(config string, in io.Reader, out io.Writer) (err error) {
	var c Config
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return fmt.Errorf("%s: %w", Env, err)
	}
	all := Peers()
	i := slices.IndexFunc(all, func(p Peer) bool { return p.Name == c.Peer })
	if i < 0 {
		return fmt.Errorf("%s: there is no peer %q", Env, c.Peer)
	}
	var heap []byte
	if !c.Bare {
		heap = make([]byte, liveHeap) // never touched, so it takes no memory
	}
	defer runtime.KeepAlive(heap)
	if c.Profile != "" {
		f, err := os.Create(c.Profile)
		if err != nil {
			return fmt.Errorf("CPU profile: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return fmt.Errorf("CPU profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	b, err := all[i].open(c)
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
		_, _ = io.Copy(io.Discard, in) // however it ends, the parent is done with this process
		_ = server.Close()             // and with its requests
	}()
	if _, err := fmt.Fprintln(out, listener.Addr()); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A backend is a peer at work.
type backend struct {
	// serve returns a handler that lets work use the session of the request, saves the session, and responds
	// with the number that work returns.
	serve func(work func(*http.Request, values) int) http.Handler
	lock  lockFunc // without sessions; nil if the peer has no such lock
	close func()
}

// A lockFunc acquires the lock of a key, waiting until ctx ends at the latest, and returns how to release the
// lock.
type lockFunc func(ctx context.Context, key string) (unlock func() error, err error)

// values are what one session holds.
type values interface {
	get(key string) int // 0 if absent
	put(key string, v any)
	size() int // the number of keys
}

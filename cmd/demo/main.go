// Command demo shows the purpose of Latchkey: it makes concurrent writes to one session, without a lock and
// with it, and counts how many are kept. Its second page shows the devices of a user, and what an open page sees if its
// session is ended from another device.
//
// By default it needs no other program: Redis is embedded. Open its page in a browser, use it over HTTP (see
// newApp), or run its self-test with -check.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	usage, wrong := errors.AsType[usageError](err)
	if !usage.printed {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	if wrong {
		os.Exit(2)
	}
	os.Exit(1)
}

// run is the program: it serves until ctx ends, or checks and returns.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	c, err := parseFlags(args, getenv, stderr)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	r, err := openRedis(ctx, c)
	if err != nil {
		return err
	}
	defer r.close()
	if c.checks {
		return check(ctx, c, r, log, stdout)
	}
	st, err := r.store(c)
	if err != nil {
		return err
	}
	defer st.Close()
	handler, err := newApp(ctx, c, r, st, log)
	if err != nil {
		return err
	}
	return serve(ctx, c, handler, log, stdout)
}

// serve listens until ctx ends, and then waits for the requests under way, so that they leave no lock behind. The
// handler must end its streams when ctx ends.
func serve(ctx context.Context, c config, handler http.Handler, log *slog.Logger, stdout io.Writer) error {
	l, err := net.Listen("tcp", c.addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: choose another -addr, such as 127.0.0.1:0 for any free port", err)
	} else if err != nil {
		return fmt.Errorf("-addr: %w", err)
	}
	srv := newServer(handler, log)
	fmt.Fprintf(stdout, "Latchkey demo: http://%s/\n", l.Addr())
	log.Info("listening", "addr", l.Addr().String(), "redis", c.redisName(), "lock", c.lock)
	if c.redisKind() == "embedded" {
		log.Info("the embedded Redis forgets all sessions when the demo ends")
	}
	log.Info("plain HTTP: the cookie goes without __Host- and Secure")

	drained := make(chan error, 1)
	go func() {
		<-ctx.Done()
		// Long enough for a request to wait for its session, hold it, and respond.
		patience, cancel := context.WithTimeout(context.Background(), c.lockWait+c.work+5*time.Second)
		defer cancel()
		drained <- srv.Shutdown(patience)
	}()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	err = <-drained
	log.Info("stopped")
	return err
}

const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second // for a request with its body
	idleTimeout   = time.Minute      // between two requests of a connection
)

// newServer returns a server that does not wait for slow clients. Its timeouts cover reading a request only,
// so that the request may wait for its session and hold it for as long as -work says. There is no timeout for
// writing, since that would include the work.
func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

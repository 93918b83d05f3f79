package redistest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/a2139e8d/latchkey/internal/subprocess"
)

// Real starts a redis-server process (or valkey-server, a fork of it) with the given flags added to its
// command line. If neither is installed, the test is skipped, and this package's tests fail and say so.
func Real(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return RealWith(tb, nil, args...)
}

// RealWith is Real with additional environment variables, as "NAME=value".
func RealWith(tb testing.TB, env []string, args ...string) *Server {
	tb.Helper()
	return realWith(tb, env, func(int) []string { return args })
}

// realWith is RealWith with flags that depend on the port.
func realWith(tb testing.TB, env []string, args func(port int) []string) *Server {
	tb.Helper()
	// Not tb.TempDir, which has the test's name in it: the path of a Unix
	// socket has room for about a hundred bytes.
	dir, err := os.MkdirTemp("", "rt")
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return newServer(tb, &process{
		binary: Binary(tb),
		dir:    tb.TempDir(),
		socket: filepath.Join(dir, "s"),
		args:   args,
		env:    env,
	})
}

// Binary returns the path of the server that Real starts. If there is none, it skips the test.
func Binary(tb testing.TB) string {
	tb.Helper()
	path, err := find()
	if err != nil {
		tb.Skip(err)
	}
	return path
}

// Missing returns an error that says which tests are skipped if Real finds no server, or nil.
func Missing() error {
	_, err := find()
	return err
}

// find returns the path of the server that REDIS_SERVER names, or else of the first one that is
// installed.
func find() (string, error) {
	names := []string{"redis-server", "valkey-server"}
	if name := os.Getenv("REDIS_SERVER"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("found none of %q: all tests on a real Redis were skipped; `make test` installs it, and REDIS_SERVER may name one", names)
}

// process is a backend.
type process struct {
	binary string
	dir    string
	socket string
	args   func(port int) []string
	env    []string

	running *subprocess.Process // the latest
}

func (p *process) start(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	cmd := exec.Command(p.binary, append([]string{
		"--bind", host,
		"--port", port,
		"--unixsocket", p.socket,
		"--dir", p.dir,
		"--save", "",
		"--appendonly", "no",
	}, p.args(number)...)...)
	cmd.Env = append(os.Environ(), p.env...)
	running, err := subprocess.Start(cmd)
	if err != nil {
		return err
	}
	p.running = running
	return p.waitReady()
}

// waitReady asks over the Unix socket. No other server has that path, while another process may have
// taken the TCP port first.
func (p *process) waitReady() error {
	err := p.running.Await(func() bool {
		c, err := dial("unix", p.socket, timeout)
		if err != nil {
			return false
		}
		defer c.Close()
		_, err = c.Do("PING")
		return err == nil
	})
	if err != nil {
		p.stop()
	}
	return err
}

// stop kills the process, which also works on a paused one.
func (p *process) stop() { p.running.Kill() }

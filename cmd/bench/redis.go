package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A redisServer is a redis-server process that was started for this run, and keeps nothing on disk.
type redisServer struct {
	addr    string
	version string
	admin   *redis.Client // observes the server; no peer uses it
	cmd     *exec.Cmd
	dir     string
	log     bytes.Buffer    // to be read only after exited
	exited  <-chan struct{} // closed when the process has ended
}

// startRedis starts a server on a free port. The server is killed by close, or at the end of ctx.
func startRedis(ctx context.Context) (*redisServer, error) {
	binary, err := findRedis()
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, fmt.Errorf("looking for a free port: %w", err)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "latchkey-bench")
	if err != nil {
		return nil, err
	}

	s := &redisServer{addr: addr, dir: dir}
	s.cmd = exec.CommandContext(ctx, binary, "--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		_ = os.RemoveAll(dir) // the error to report is the other one
		return nil, fmt.Errorf("starting Redis: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		_ = s.cmd.Wait() // its error says that the process was killed, as expected
		close(exited)
	}()
	s.exited = exited
	s.admin = redis.NewClient(&redis.Options{Addr: addr})
	if err := s.waitReady(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func findRedis() (string, error) {
	names := []string{"redis-server", "valkey-server"}
	if name := os.Getenv("REDIS_SERVER"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("found none of %q: install redis-server (by `make setup`, for example), or name the binary in REDIS_SERVER", names)
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// waitReady waits until the server replies, and checks that the reply is from this server: another process
// may have taken the port first. The end of the run's context kills the server.
func (s *redisServer) waitReady(run context.Context) error {
	ctx, cancel := context.WithTimeout(run, time.Minute)
	defer cancel()
	for {
		if info, err := s.admin.InfoMap(ctx, "server").Result(); err == nil {
			about := info["Server"]
			if about["process_id"] != strconv.Itoa(s.cmd.Process.Pid) {
				return fmt.Errorf("another Redis replies on %s: run the bench again", s.addr)
			}
			s.version = about["redis_version"]
			return nil
		}
		select {
		case <-s.exited:
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
			continue
		}
		if run.Err() != nil || ctx.Err() != nil { // the second may be set later, when the server has been killed already
			<-ctx.Done()
			return fmt.Errorf("%s does not reply: %w", s.cmd.Path, context.Cause(ctx))
		}
		return fmt.Errorf("%s ended at once:\n%s", s.cmd.Path, s.log.String())
	}
}

func (s *redisServer) close() {
	_ = s.admin.Close()      // there is nothing left to send
	_ = s.cmd.Process.Kill() // if it fails, the process has ended already, which is as good
	<-s.exited
	_ = os.RemoveAll(s.dir) // empty, and in the temporary directory
}

// A cost is what requests cost Redis. On a machine that does other work, too, it is steadier than any time.
type cost struct {
	cpu      time.Duration
	reads    int            // number of times that Redis has read from a connection
	commands map[string]int // executed, for clients and for scripts
}

// cost returns the server's costs since its start.
func (s *redisServer) cost(ctx context.Context) (cost, error) {
	c := cost{commands: make(map[string]int)}
	info, err := s.admin.InfoMap(ctx, "cpu", "stats", "commandstats").Result()
	if err != nil {
		return c, fmt.Errorf("asking Redis for its costs: %w", err)
	}
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info["CPU"][field], 64)
		if err != nil {
			return c, fmt.Errorf("asking Redis for its costs: %s: %w", field, err)
		}
		c.cpu += time.Duration(seconds * float64(time.Second))
	}
	if c.reads, err = strconv.Atoi(info["Stats"]["total_reads_processed"]); err != nil {
		return c, fmt.Errorf("asking Redis for its costs: %w", err)
	}
	for name, stat := range info["Commandstats"] {
		name = strings.TrimPrefix(name, "cmdstat_")
		switch command, _, _ := strings.Cut(name, "|"); command {
		case "info", "hello", "client": // this program, and new connections
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(stat, "calls="), ",")
		if c.commands[name], err = strconv.Atoi(calls); err != nil {
			return c, fmt.Errorf("asking Redis for its costs: %s: %w", name, err)
		}
	}
	return c, nil
}

// since returns the costs since an earlier cost.
func (c cost) since(before cost) cost {
	spent := cost{
		cpu:      c.cpu - before.cpu,
		reads:    c.reads - before.reads - 1, // the read of the INFO for c itself
		commands: make(map[string]int),
	}
	for name, calls := range c.commands {
		spent.commands[name] = calls - before.commands[name]
	}
	return spent
}

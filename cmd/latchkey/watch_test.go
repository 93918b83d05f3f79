package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A running command's output is read while it runs.
type running struct {
	*exec.Cmd
	stdout, stderr *bufio.Reader
}

func start(t *testing.T, url string, args ...string) running {
	t.Helper()
	c := calling(t, url, args...)
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return running{c, bufio.NewReader(stdout), bufio.NewReader(stderr)}
}

// end sends a signal, and returns what the command prints on stderr until it has ended.
func (r running) end(t *testing.T, signal os.Signal) (said string) {
	t.Helper()
	if err := r.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(r.stderr)
	_, _ = io.Copy(io.Discard, r.stdout)
	_ = r.Wait() // the exit code says it
	return string(rest)
}

// look reads one look of watch --json.
func (r running) look(t *testing.T) (look struct {
	At    time.Time
	Locks []holder
}) {
	t.Helper()
	line, err := r.stdout.ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), &look)
	}
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return look
}

// watch shows every second who holds which session, until it is interrupted, which is a clean end. For people
// each look is a table. In a file there are no codes of terminals.
func TestWatch(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		c := start(t, s.URL, "watch", "--json")
		h := hold(t, st, first, "POST /order")
		var seen []time.Time
		for len(seen) < 2 {
			if look := c.look(t); len(look.Locks) == 1 && look.Locks[0].Request == "POST /order" {
				seen = append(seen, look.At)
			}
		}
		near(t, "at", seen[1], time.Now())
		if apart := seen[1].Sub(seen[0]); apart < 900*time.Millisecond {
			t.Errorf("two looks in %v", apart)
		}
		people := start(t, s.URL, "watch")
		var text string
		for range 4 {
			line, err := people.stdout.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			text += line
		}
		people.end(t, signal)
		contains(t, text, "UTC  1 held, 0 other processes waiting\n", "SESSION ", first, "POST /order")
		if strings.Contains(text, "\x1b") {
			t.Errorf("%q", text)
		}
		h.Release(t.Context())
		if said := c.end(t, signal); said != "" || c.ProcessState.ExitCode() != exitOK {
			t.Errorf("after %v: exit %d, %q", signal, c.ProcessState.ExitCode(), said)
		}
	}
}

// Under nohup a terminal that hangs up does not end a command.
func TestWatchUnderNohup(t *testing.T) {
	s, _ := withRedis(t)
	c := exec.CommandContext(t.Context(), "sh", "-c", `trap "" HUP; exec "$0" watch --json`, program)
	c.Env = append(os.Environ(), redisVariable+"="+s.URL)
	stdout, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	r := running{c, bufio.NewReader(stdout), bufio.NewReader(strings.NewReader(""))}
	r.look(t)
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	r.look(t)
	r.look(t)
	if r.end(t, syscall.SIGTERM); c.ProcessState.ExitCode() != exitOK {
		t.Errorf("exit %d", c.ProcessState.ExitCode())
	}
}

// While Redis is unavailable or silent, watch says so once and goes on. It can be interrupted then, too.
func TestWatchWhileRedisIsAway(t *testing.T) {
	s, _ := withRedis(t)
	c := start(t, s.URL, "watch", "--json", "--timeout", "1s")
	says := func(words string) {
		t.Helper()
		limit := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
		defer limit.Stop()
		for {
			line, err := c.stderr.ReadString('\n')
			if err != nil {
				t.Fatalf("watch does not say %q: %q, %v", words, line, err)
			}
			if strings.Contains(line, words) { // a broken connection may come first
				return
			}
		}
	}
	c.look(t)
	s.Pause(t)
	says("no reply within 1s")
	s.Resume(t)
	c.look(t)
	s.Stop(t)
	says("connection refused")
	s.Restart(t)
	c.look(t)
	s.Stop(t)
	says("connection refused")
	broken, err := net.Listen("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	for try := range 3 {
		asking, err := broken.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if try%2 == 0 {
			_ = asking.(*net.TCPConn).SetLinger(0) // it is reset
		}
		asking.Close()
	}
	said := c.end(t, os.Interrupt)
	if strings.Count(said, "\n") > 1 || c.ProcessState.ExitCode() != exitOK {
		t.Errorf("watch says it again: exit %d, %q", c.ProcessState.ExitCode(), said)
	}
}

// If a command other than watch is interrupted while Redis does not reply, it has failed, and says why in a word.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := start(t, "redis://"+silent.Addr().String(), "locks", "--timeout", "1m")
	asking, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer asking.Close()
	if _, err := asking.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if said := c.end(t, os.Interrupt); c.ProcessState.ExitCode() != exitError || strings.Count(said, "\n") != 1 {
		t.Errorf("exit %d, %q", c.ProcessState.ExitCode(), said)
	}
}

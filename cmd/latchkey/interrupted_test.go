package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// A command that waits for a silent node of a cluster can be interrupted at once. It says nothing of the other nodes,
// which it has not asked.
func TestInterruptedWhileANodeIsSilent(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0)
	node := listening(t)
	_, port, _ := net.SplitHostPort(node.Addr().String())
	c.Nodes[2].Do(t, "CONFIG", "SET", "cluster-announce-port", port)
	redistest.Eventually(t, "the others know the silent address", func() bool {
		knows := func(n *redistest.Server) bool {
			return strings.Contains(string(n.Do(t, "CLUSTER", "NODES").([]byte)), node.Addr().String()+"@")
		}
		return knows(c.Nodes[0]) && knows(c.Nodes[1])
	})
	for _, command := range []string{"doctor", "stats", "locks", "users"} {
		interrupt(t, calling(t, "redis://"+c.Nodes[0].Addr, command, "--timeout", "10m"), func() { asked(t, node) }, "latchkey: interrupted\n")
	}
}

func TestInterruptedWhileItConnects(t *testing.T) {
	t.Parallel()
	server := listening(t)
	interrupt(t, calling(t, "redis://"+server.Addr().String(), "stats", "--timeout", "10m"), func() { asked(t, server) }, "latchkey: interrupted\n")
}

// listening is a server that never replies.
func listening(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// asked waits until a client has sent something.
func asked(t *testing.T, silent net.Listener) {
	t.Helper()
	_ = silent.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute)) // for a command that does not come
	for {
		conn, err := silent.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if n, _ := conn.Read(make([]byte, 1)); n > 0 { // otherwise it belongs to the command before
			return
		}
	}
}

// If end is interrupted, it says what it was ending, which may be ended.
func TestInterruptedWhileItEnds(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	ids := guests(t, opened(t, r.URL, store.Options{}), 2)
	r.Do(t, "CLIENT", "PAUSE", "600000", "WRITE")
	ending := func() {
		redistest.Eventually(t, "it is ending a session", func() bool {
			return strings.Contains(string(r.Do(t, "INFO", "clients").([]byte)), "blocked_clients:1\r\n")
		})
	}
	interrupt(t, calling(t, r.URL, append([]string{"end", "--timeout", "10m"}, ids...)...), ending,
		"latchkey: session "+ids[0]+": interrupted: perhaps it is ended\nlatchkey: interrupted\n")
	redistest.Eventually(t, "that command is gone", func() bool {
		return strings.Contains(string(r.Do(t, "INFO", "clients").([]byte)), "blocked_clients:0\r\n")
	})
	interrupt(t, calling(t, r.URL, "end", "--timeout", "10m", "--user", "ann"), ending,
		"latchkey: interrupted: perhaps sessions of the user are ended\n")

	fails(t, call(t, r.URL, "end", "--timeout", "5s", ids[0]), exitError, "no reply within 5s", ": perhaps it is ended")
}

func TestInterruptedWhileItReads(t *testing.T) {
	t.Parallel()
	c := calling(t, "redis://127.0.0.1:1", "end", "-")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	interrupt(t, c, func() {
		// It waits for signals before it reads: once the pipe is full, it has read.
		if _, err := fmt.Fprint(stdin, strings.Repeat("\n", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}, "latchkey: interrupted\n")
}

// interrupt runs a command, and interrupts it as soon as ready returns. The command must end, and say only this.
func interrupt(t *testing.T, c *exec.Cmd, ready func(), says string) {
	t.Helper()
	var stdout, stderr strings.Builder
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	defer limit.Stop()
	ready()
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // for the exit status, which is asked below
	if code := c.ProcessState.ExitCode(); code != exitError || stdout.Len() > 0 || stderr.String() != says {
		t.Errorf("%q: exit %d, %q, %q", c.Args[1:], code, stdout.String(), stderr.String())
	}
}

package clienttest_test

import (
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/locker/transport/clienttest"
	"github.com/gomodule/redigo/redis"
)

// open makes the client under test.
func open(t testing.TB, address string, timeout time.Duration) transport.Client {
	c := transport.NewRedigo(&redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", address) }}, timeout)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// start starts a Redis on a free port.
func start(t testing.TB) clienttest.Server {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)

	var server *exec.Cmd
	run := func() {
		server = exec.Command("redis-server", "--port", port, "--save", "")
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		for {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				conn.Close()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	signal := func(s syscall.Signal) { _ = server.Process.Signal(s) }
	stop := func() { signal(syscall.SIGKILL); _ = server.Wait() }
	run()
	t.Cleanup(stop)
	return clienttest.Server{
		Address: address,
		Stop:    stop,
		Restart: run,
		Pause:   func() { signal(syscall.SIGSTOP) },
		Resume:  func() { signal(syscall.SIGCONT) },
	}
}

// The test of a client is one call, and the functions that make the client and start a Redis.
func ExampleRun() {
	var t *testing.T // of func TestMyClient(t *testing.T)
	clienttest.Run(t, clienttest.Kind{Open: open, Start: start, OneWrite: true})
}

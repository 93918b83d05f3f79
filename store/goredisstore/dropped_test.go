package goredisstore

import (
	"bufio"
	"context"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"weak"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/go-redis/v9"
)

// movedServer is a node that replies to each GET with a redirection to another node. It returns its address.
func movedServer(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go redirect(c, to)
		}
	}()
	return l.Addr().String()
}

// redirect serves one connection until the client closes it.
func redirect(c net.Conn, to string) {
	defer c.Close()
	number := func(r *bufio.Reader) int { // in a line such as *2 or $3
		line, _ := r.ReadString('\n')
		n, _ := strconv.Atoi(strings.Trim(line, "*$\r\n"))
		return n
	}
	for r := bufio.NewReader(c); ; {
		words := make([]string, number(r))
		if len(words) == 0 {
			return
		}
		for i := range words {
			word := make([]byte, number(r)+len("\r\n"))
			if _, err := io.ReadFull(r, word); err != nil {
				return
			}
			words[i] = strings.ToUpper(strings.TrimSpace(string(word)))
		}
		reply := "-ERR unknown command\r\n"
		if words[0] == "GET" {
			reply = "-MOVED 1 " + to + "\r\n"
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

// The route names the node that has replied, not one that go-redis has dropped and that was not asked.
func TestTheRouteOfANodeThatWasDropped(t *testing.T) {
	t.Parallel()
	const gone = "127.0.0.1:9"
	addr := movedServer(t, gone)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
		},
		Protocol: 2, MaxRedirects: -1,
	})
	t.Cleanup(func() { _ = client.Close() })
	c := newCluster(client, patience)
	dropped := redis.NewClient(&redis.Options{Addr: gone})
	if err := dropped.Close(); err != nil {
		t.Fatal(err)
	}
	c.nodes.Store(gone, weak.Make(dropped))
	_, route, err := c.DoRouted(t.Context(), "k", transport.Command{"GET", "k"})
	if err != nil || route.Moved != 0 || route.Node == "" || !strings.HasSuffix(addr, route.Node) { // go-redis may leave out the host
		t.Errorf("the route is %+v, %v: only %s has replied", route, err, addr)
	}
	runtime.KeepAlive(dropped)
}

// Behind Sentinel, go-redis does not report the master's address, so the route has none.
func TestTheRouteBehindSentinel(t *testing.T) {
	t.Parallel()
	master := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "master", SentinelAddrs: []string{"127.0.0.1:9"}, DB: 3,
	})
	t.Cleanup(func() { _ = master.Close() })
	over, cancel := context.WithCancel(t.Context())
	cancel() // go-redis would dial again and again
	_, route, err := (&client{master, patience}).DoRouted(over, "", transport.Command{"PING"})
	if err == nil || route != (transport.Route{Database: "3"}) {
		t.Errorf("the route is %+v, %v: want only the database, and an error", route, err)
	}
}

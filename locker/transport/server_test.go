package transport_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// echo has a number of callers ask for many different things at once, and checks that each gets its
// own. failed is called with every error.
func echo(t *testing.T, client transport.Client, callers, times int, padding string, failed func(error)) {
	t.Helper()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := range times {
				want := fmt.Sprint(i, " ", n, padding)
				replies, err := client.Do(t.Context(), "", transport.Command{"ECHO", want})
				if err != nil {
					failed(err)
				} else if got := fmt.Sprintf("%s", replies[0]); got != want {
					t.Errorf("asked for %.20q, got %.20q", want, got)
				}
			}
		})
	}
	all.Wait()
}

// onServers runs f against an embedded Redis and against a real one.
func onServers(t *testing.T, f func(t *testing.T, server *redistest.Server)) {
	t.Parallel()
	redistest.EachInRealTime(t, f)
}

// Any number of callers share one connection, and take none of the pool.
func TestCrowd(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		pool := server.Pool(t, 1)
		defer pool.Get().Close() // there is none to be had
		dialled, dial := 0, pool.Dial
		pool.Dial = func() (redis.Conn, error) { dialled++; return dial() }
		client := transport.NewRedigo(pool, time.Minute)
		defer client.Close()
		echo(t, client, 64, 20, "", func(err error) { t.Error(err) })
		if dialled != 1 {
			t.Errorf("%d connections", dialled)
		}
	})
}

// Commands and replies of some size fill all that the network keeps. The embedded server stops
// reading then, until its replies are read.
func TestCrowdWithLargeRecords(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		client := transport.NewRedigo(server.Pool(t, 1), time.Minute)
		defer client.Close()
		echo(t, client, 64, 2, strings.Repeat("x", 200_000), func(err error) { t.Error(err) })
	})
}

// Connections break all the time, at any point, and some callers have little time. Nobody gets
// another's reply.
func TestRepliesAreNeverMixed(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		proxy := redistest.NewProxy(t, server)
		faults := []redistest.Fault{redistest.DropReply, redistest.CutReply, redistest.DropCommand}
		proxy.Inject(func(redistest.Command) redistest.Fault {
			if n := rand.IntN(100); n < len(faults) {
				return faults[n]
			}
			return redistest.Pass
		})
		client := transport.NewRedigo(proxy.Pool(t, 1), time.Minute)
		defer client.Close()
		echo(t, hurried{client}, 64, 30, "", func(err error) {
			if !errors.Is(err, transport.ErrUnavailable) {
				t.Error(err)
			}
		})
	})
}

// A hurried client gives every third exchange little time.
type hurried struct{ transport.Client }

func (h hurried) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	if rand.IntN(3) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(int(3*time.Millisecond))))
		defer cancel()
	}
	return h.Client.Do(ctx, key, commands...)
}

// Also where to connect takes exchanges of its own, a silent server keeps nobody for longer than the
// timeout and a little: less than two of them.
func TestSilentServerWithPassword(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	server.Do(t, "ACL", "SETUSER", "ann", "on", ">pass", "~*", "&*", "+@all")
	const timeout = 2 * time.Second
	client := transport.NewRedigo(&redis.Pool{Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", server.Addr, redis.DialUsername("ann"), redis.DialPassword("pass"))
	}}, timeout)
	defer client.Close()
	echo(t, client, 1, 1, "", func(err error) { t.Error(err) })
	server.Pause(t)
	defer server.Resume(t)
	for range 2 { // the first time there is a connection
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * timeout / 32)
				begun := time.Now()
				_, err := client.Do(t.Context(), "", transport.Command{"PING"})
				if !errors.Is(err, transport.ErrUnavailable) || time.Since(begun) > timeout*7/4 {
					t.Errorf("%v, after %v", err, time.Since(begun))
				}
			})
		}
		all.Wait()
	}
}

// Many exchanges of some size are sent without waiting for each other's replies, however far away Redis
// is: the server that is asked here answers nobody until it has all.
func TestNobodyWaitsForRepliesOfOthers(t *testing.T) {
	t.Parallel()
	const callers, size = 64, 40_000
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer listener.Close()
	serving.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		for range callers {
			if _, err := fmt.Fscanf(r, "*2\r\n$4\r\nECHO\r\n$40000\r\n"); err != nil {
				t.Error(err)
				return
			}
			if _, err := io.CopyN(io.Discard, r, size+2); err != nil {
				t.Error(err)
				return
			}
		}
		_, _ = io.WriteString(conn, strings.Repeat("+DONE\r\n", callers))
		_, _ = r.ReadByte() // until the client closes
	})
	far := redistest.NewDelay(t, listener.Addr().String(), 5*time.Millisecond)
	client := open(t, far, 20*time.Second)
	value := strings.Repeat("x", size)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			replies, err := client.Do(t.Context(), "", transport.Command{"ECHO", value})
			if err != nil || replies[0] != "DONE" {
				t.Errorf("%v, %v", replies, err)
			}
		})
	}
	all.Wait()
	client.(io.Closer).Close()
}

// A pool of any server: what a network error of a dial says is kept.
func TestDialErrorIsKept(t *testing.T) {
	t.Parallel()
	client := open(t, "127.0.0.1:1", time.Second)
	_, err := client.Do(t.Context(), "", transport.Command{"PING"})
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// BenchmarkDo is one exchange, with so many callers that make one after another.
func BenchmarkDo(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			client := transport.NewRedigo(redistest.Real(b).Pool(b, 1), time.Minute)
			defer client.Close()
			procs := runtime.GOMAXPROCS(min(callers, runtime.GOMAXPROCS(0)))
			defer runtime.GOMAXPROCS(procs)
			b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := client.Do(b.Context(), "", transport.Command{"SET", "k", "token", "PX", 10_000}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

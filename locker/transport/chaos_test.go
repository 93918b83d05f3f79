package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Many callers with all sorts of deadlines share connections that fail in all sorts of ways. Each caller gets its
// own reply or an error, in time to the nanosecond. A command that was refused never reaches Redis. No goroutine
// stays.
func TestChaos(t *testing.T) {
	for name, faults := range map[string]int{"healthy": 0, "bad": 1000, "terrible": 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 {
				seed := rand.Uint64()
				synctest.Test(t, func(t *testing.T) { chaos(t, seed, faults) })
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// A jungle is a Redis that may do anything, and so may the way to it.
type jungle struct {
	t      *testing.T
	faults int // one in so many commands meets a fault; 0: none

	servers sync.WaitGroup // the ends of the connections

	mu   sync.Mutex // guards the rest
	rand *rand.Rand
	seen map[string]bool // commands that have arrived
}

const brief = 100 * time.Millisecond // the client's timeout

func chaos(t *testing.T, seed uint64, faults int) {
	j := &jungle{t: t, faults: faults, rand: rand.New(rand.NewPCG(seed, 0)), seen: map[string]bool{}}
	client := NewRedigo(&redis.Pool{Dial: j.dial}, brief)
	var all sync.WaitGroup
	refused := map[string]bool{}
	for i := range 200 {
		all.Go(func() {
			for n := range 10 {
				pause(j.upTo(5 * time.Millisecond))
				j.ask(client, fmt.Sprint(i, "/", n), refused)
			}
		})
	}
	if faults > 0 {
		all.Go(func() {
			for range 3 {
				pause(j.upTo(100 * time.Millisecond))
				client.Reset()
			}
		})
	}
	all.Wait()
	client.Close()
	pause(10 * brief) // nobody dials any more
	j.servers.Wait()
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	for name := range refused {
		if j.seen[name] {
			t.Errorf("%s was refused, but it was sent", name)
		}
	}
}

// ask makes one round trip.
func (j *jungle) ask(client *Redigo, name string, refused map[string]bool) {
	ctx, most := context.Background(), brief
	var cancel context.CancelFunc = func() {}
	switch j.n(4) {
	case 0:
		most = j.upTo(20 * time.Millisecond)
		ctx, cancel = context.WithTimeout(ctx, most)
	case 1:
		ctx, cancel = context.WithCancel(ctx)
		time.AfterFunc(j.upTo(10*time.Millisecond), cancel)
	}
	defer cancel()
	want := name
	if j.n(20) == 0 {
		want += " " + string(bytes.Repeat([]byte("x"), j.n(20_000)))
	}
	arg := []byte(want)
	begun := time.Now()
	replies, err := client.Do(ctx, "", Command{"ECHO", name, arg}, Command{"ECHO", name, arg})
	took := time.Since(begun)
	clear(arg)
	if took > most {
		j.t.Errorf("%s took %v, at most %v: %v", name, took, most, err)
	}
	switch {
	case err == nil:
		for _, reply := range replies {
			if got := fmt.Sprintf("%s", reply); got != want {
				j.t.Errorf("%s got %.20q", name, got)
			}
		}
	case !errors.Is(err, ErrUnavailable):
		j.t.Errorf("%s: %v", name, err)
	case errors.Is(err, ErrRefused):
		j.mu.Lock()
		refused[name] = true
		j.mu.Unlock()
	}
	if j.faults == 0 && err != nil && took < most && !errors.Is(ctx.Err(), context.Canceled) {
		j.t.Errorf("%s: %v, after %v", name, err, took)
	}
}

func (j *jungle) n(n int) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rand.IntN(n)
}

func (j *jungle) upTo(d time.Duration) time.Duration { return time.Duration(j.n(int(d))) }

// bad reports whether a fault happens now.
func (j *jungle) bad() bool { return j.faults > 0 && j.n(j.faults) == 0 }

func (j *jungle) dial() (redis.Conn, error) {
	pause(j.upTo(2 * time.Millisecond))
	if j.faults > 0 && j.n(10) == 0 {
		pause(j.upTo(2 * brief))
		if j.n(2) == 0 {
			return nil, errors.New("connection refused")
		}
	}
	near, far := net.Pipe()
	j.servers.Go(func() { j.serve(far) })
	return redis.NewConn(near, 0, 0), nil
}

// serve is Redis's end of a connection. The replies travel for a while.
func (j *jungle) serve(conn net.Conn) {
	replies := make(chan []byte, 1000)
	defer close(replies)
	j.servers.Go(func() {
		defer conn.Close()
		for reply := range replies {
			pause(j.upTo(50 * time.Microsecond))
			if j.bad() {
				switch j.n(3) {
				case 0: // cut in the middle
					conn.Write(reply[:j.n(len(reply))])
					conn.Close()
				case 1: // late, but it arrives
					pause(j.upTo(2 * brief))
				case 2: // lost, and all later ones as well
					for range replies {
					}
				}
			}
			conn.Write(reply)
		}
	})
	r := bufio.NewReader(conn)
	for {
		text, name, err := next(r)
		if err != nil {
			return
		}
		j.mu.Lock()
		j.seen[name] = true
		j.mu.Unlock()
		if j.bad() {
			switch j.n(3) {
			case 0:
				conn.Close()
				return
			case 1: // reads no more
				pause(j.upTo(3 * brief))
			case 2:
				pause(j.upTo(brief / 4))
			}
		}
		replies <- fmt.Appendf(nil, "$%d\r\n%s\r\n", len(text), text)
	}
}

// next reads a command, and returns its last argument and the one before.
func next(r *bufio.Reader) (last, name string, err error) {
	var n, size int
	if _, err = fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
		return "", "", err
	}
	for range n {
		name = last
		if _, err = fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
			return "", "", err
		}
		text := make([]byte, size+len("\r\n"))
		if _, err = io.ReadFull(r, text); err != nil {
			return "", "", err
		}
		last = string(text[:size])
	}
	return last, name, nil
}

package redistest_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// delayed returns a connection to a Redis that is oneWay away.
func delayed(t *testing.T, oneWay time.Duration) redis.Conn {
	t.Helper()
	c, err := redis.Dial("tcp", redistest.NewDelay(t, redistest.Real(t).Addr, oneWay))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A round trip takes twice the delay.
func TestDelay(t *testing.T) {
	t.Parallel()
	const oneWay = 5 * time.Millisecond
	c := delayed(t, oneWay)
	for range 20 {
		begun := time.Now()
		if _, err := c.Do("PING"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 2*oneWay {
			t.Errorf("a round trip of %v", took)
		}
	}
}

// The delay does not limit the throughput. A hundred commands sent one after another take one delay, not a
// hundred, and so does a large command.
func TestDelayIsNoBottleneck(t *testing.T) {
	t.Parallel()
	const oneWay = 50 * time.Millisecond
	c := delayed(t, oneWay)
	value := strings.Repeat("x", 100_000)
	begun := time.Now()
	for range 100 {
		if err := c.Send("ECHO", value); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		if got, err := redis.String(c.Receive()); got != value || err != nil {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	if took := time.Since(begun); took > 100*oneWay {
		t.Errorf("all replies took %v", took)
	}
}

// When one side closes, the other side closes as well, once all bytes under way have arrived.
func TestDelayEnds(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	near, err := net.Dial("tcp", redistest.NewDelay(t, listener.Addr().String(), time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if _, err := io.WriteString(near, "last words"); err != nil {
		t.Fatal(err)
	}
	near.Close()
	if got, err := io.ReadAll(far); string(got) != "last words" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

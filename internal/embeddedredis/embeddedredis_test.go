package embeddedredis_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/embeddedredis"
	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts a Redis, and returns a connection to it.
func start(t *testing.T) (*embeddedredis.Redis, redis.Conn) {
	t.Helper()
	r, err := embeddedredis.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	pool := r.Pool()
	conn := pool.Get()
	t.Cleanup(func() {
		_ = conn.Close()
		_ = pool.Close()
	})
	return r, conn
}

// No other program can read the Redis, since it listens nowhere.
func TestItHasNoPort(t *testing.T) {
	t.Parallel()
	r, conn := start(t)
	if reply, err := redis.String(conn.Do("PING")); err != nil || reply != "PONG" || r.Addr() != "" {
		t.Errorf("it replies %q, %v, and listens at %q", reply, err, r.Addr())
	}
}

// A client that still dials while the Redis is closed does not start it again.
func TestItStaysClosed(t *testing.T) {
	t.Parallel()
	r, _ := start(t)
	r.Close()
	if _, err := r.Pool().Dial(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// Keys expire as the clock runs. If there are few keys, they expire to the millisecond.
func TestTheClockRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, conn := start(t)
		if _, err := conn.Do("SET", "k", "v", "PX", 1000); err != nil {
			t.Fatal(err)
		}
		for _, left := range []int{1000, 999, 998, 1, -2} {
			if got, err := redis.Int(conn.Do("PTTL", "k")); err != nil || got != left {
				t.Errorf("the key has %d ms left, %v, want %d", got, err, left)
			}
			if time.Sleep(time.Millisecond); left == 998 {
				time.Sleep(996 * time.Millisecond)
			}
		}
	})
}

// Time stands still for a script: a key that has not expired when the script begins still exists when it ends.
func TestTimeStandsStillForAScript(t *testing.T) {
	t.Parallel()
	_, conn := start(t)
	const script = `
		local function now() local t = redis.call('TIME'); return t[1] * 1000 + t[2] / 1000 end
		redis.call('SET', KEYS[1], 'v', 'PX', 5)
		local began = now()
		repeat until now() - began > 20
		return redis.call('EXISTS', KEYS[1])`
	if n, err := redis.Int(conn.Do("EVAL", script, 1, "k")); err != nil || n != 1 {
		t.Errorf("at the end of the script there are %d keys, %v", n, err)
	}
	if n, err := redis.Int(conn.Do("EXISTS", "k")); err != nil || n != 0 {
		t.Errorf("after the script there are %d keys, %v", n, err)
	}
}

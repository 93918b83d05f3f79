package redistest_test

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// on injects a fault for commands of one name.
func on(name string, fault redistest.Fault) func(redistest.Command) redistest.Fault {
	return func(cmd redistest.Command) redistest.Fault {
		if cmd.Name == name {
			return fault
		}
		return redistest.Pass
	}
}

// wantSilence sets k, and expects no reply. It returns when the proxy has the command, which on a busy machine may be
// after the client has given up.
func wantSilence(t *testing.T, p *redistest.Proxy, c redis.Conn) {
	t.Helper()
	_, err := redis.DoWithTimeout(c, 100*time.Millisecond, "SET", "k", "v")
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v, want a timeout", err)
	}
	redistest.Eventually(t, "SET has arrived", func() bool { return p.Requests() == 1 })
}

func TestClosingFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault    redistest.Fault
		executed bool
	}{
		"DropReply":   {redistest.DropReply, true},
		"DropCommand": {redistest.DropCommand, false},
		"CutReply":    {redistest.CutReply, true},
	} {
		t.Run(name, func(t *testing.T) {
			through(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, c redis.Conn) {
				p.Inject(on("SET", tt.fault))
				_, err := c.Do("SET", "k", "v")
				if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("error %v, want the error of a closed connection", err)
				}
				if got := s.Exists(t, "k"); got != tt.executed {
					t.Errorf("executed: %v, want %v", got, tt.executed)
				}
				if got := p.Requests(); got != 1 {
					t.Errorf("Requests() = %d, want 1", got)
				}
			})
		})
	}
}

func TestCutReplyDeliversHalf(t *testing.T) {
	through(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, _ redis.Conn) {
		p.Inject(on("PING", redistest.CutReply))
		c, err := memnet.DialContext(t.Context(), "tcp", p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "*2\r\n$4\r\nPING\r\n$5\r\nhello\r\n")
		got, err := io.ReadAll(c) // the full reply would be "$5\r\nhello\r\n"
		if string(got) != "$5\r\nh" || err != nil {
			t.Errorf("received %q, %v", got, err)
		}
	})
}

// While a command hangs, no connection answers a PING. If only one connection has died, the others
// answer.
func TestPingAfterHang(t *testing.T) {
	for name, c := range map[string]struct {
		fault redistest.Fault
		want  error
	}{
		"Hang":        {redistest.Hang, os.ErrDeadlineExceeded},
		"HangCommand": {redistest.HangCommand, os.ErrDeadlineExceeded},
		"Die":         {redistest.Die, nil},
	} {
		t.Run(name, func(t *testing.T) {
			through(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, conn redis.Conn) {
				p.Inject(on("SET", c.fault))
				wantSilence(t, p, conn)
				other := p.Pool(t, 1).Get()
				defer other.Close()
				timeout := 100 * time.Millisecond
				if c.want == nil {
					timeout = 20 * time.Second
				}
				if _, err := redis.DoWithTimeout(other, timeout, "PING"); !errors.Is(err, c.want) {
					t.Errorf("PING: %v, want %v", err, c.want)
				}
				if c.fault == redistest.Hang {
					redistest.Eventually(t, "SET", func() bool { return s.Exists(t, "k") })
				}
			})
		})
	}
}

func TestHangCommand(t *testing.T) {
	through(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, c redis.Conn) {
		p.Inject(on("SET", redistest.HangCommand))
		wantSilence(t, p, c)
		c.Close() // the client gives up
		if s.Exists(t, "k") {
			t.Error("the command was not held back")
		}
		p.Release()
		if !s.Exists(t, "k") {
			t.Error("Release did not forward the command")
		}
		p.Release() // does nothing

		patient, got := p.Pool(t, 1).Get(), make(chan error)
		defer patient.Close()
		go func() {
			_, err := patient.Do("SET", "k", "v")
			got <- err
		}()
		redistest.Eventually(t, "SET sent", func() bool { return p.Requests() == 2 })
		p.Release()
		if err := <-got; err != nil {
			t.Errorf("the client that waited for its reply: %v", err)
		}
	})
}

package transport

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A faulty connection fails in one of its methods, once it is told to.
type faulty struct {
	redis.Conn
	in  atomic.Value // the method that fails, a string; none: ""
	bug func()
}

func (f *faulty) meets(method string) {
	if f.in.CompareAndSwap(method, "") {
		f.bug()
	}
}

func (f *faulty) Send(name string, args ...any) error {
	f.meets("Send")
	return f.Conn.Send(name, args...)
}

func (f *faulty) Flush() error {
	f.meets("Flush")
	return f.Conn.Flush()
}

// Close meets the bug before others can see that the connection is closed, and close it, too.
func (f *faulty) Close() (err error) {
	defer func() { err = f.Conn.Close() }()
	f.meets("Close")
	return nil
}

func (f *faulty) ReceiveWithTimeout(d time.Duration) (any, error) {
	f.meets("Receive")
	return redis.ReceiveWithTimeout(f.Conn, d)
}

func (f *faulty) DoWithTimeout(d time.Duration, name string, args ...any) (any, error) {
	return redis.DoWithTimeout(f.Conn, d, name, args...)
}

var bugs = map[string]func(){"a panic": func() { panic("a bug") }, "Goexit": runtime.Goexit}

// P7: if a connection from the application's pool panics, or ends its goroutine, only the connection breaks. All
// its calls learn that at once, the next round trip gets another connection, and the process lives.
func TestAConnectionPanics(t *testing.T) {
	for name, bug := range bugs {
		t.Run(name, func(t *testing.T) {
			each(t, map[string]string{"Send": "Send", "Flush": "Flush", "Receive": "Receive", "Close": "Close"}, func(t *testing.T, method string) {
				p := newPuppet(t)
				f := &faulty{bug: bug}
				p.pool.Dial = func() (_ redis.Conn, err error) {
					p.pool.Dial = p.dial
					f.Conn, err = p.dial()
					return f, err
				}
				w := p.wantServed("first")
				a := p.ask(t.Context(), "a")
				w.wantCommands("a")
				synctest.Wait() // a reads: until then it would write b's commands, or meet the bug of Receive
				f.in.Store(method)
				begun := time.Now()
				if method == "Close" {
					p.client.Reset()
				} else {
					b := p.ask(t.Context(), "b") // its caller writes
					if method == "Receive" {
						w.wantCommands("b")
						w.answer("a")
						<-b.done
					}
				}
				<-a.done
				if took := time.Since(begun); took > 0 || method != "Receive" && !errors.Is(a.err, ErrUnavailable) {
					t.Errorf("the call of a returned %v after %v", a.err, took)
				}
				p.wantServed("next")
				if p.client.Close(); f.in.Load() != "" {
					t.Errorf("%s was not called", method)
				}
			})
		})
	}
}

// P7: if a dial panics, or ends its goroutine, only the calls that wait for it fail.
func TestADialPanics(t *testing.T) {
	each(t, bugs, func(t *testing.T, bug func()) {
		p := newPuppet(t)
		p.pool.Dial = func() (redis.Conn, error) {
			p.pool.Dial = p.dial
			bug()
			return nil, nil
		}
		a := p.ask(t.Context(), "a")
		a.wantError(ErrUnavailable, false)
		a.wantTook(0)
		p.wantServed("next")
	})
}

// A subscription whose context ends is closed by a separate goroutine, where a panic would end the process.
func TestACloseOfASubscriptionPanics(t *testing.T) {
	each(t, bugs, func(t *testing.T, bug func()) {
		p := newPuppet(t)
		p.pool.Dial = func() (redis.Conn, error) {
			conn, err := p.dial()
			f := &faulty{Conn: conn, bug: bug}
			f.in.Store("Close")
			return f, err
		}
		ctx, cancel := context.WithCancel(t.Context())
		w, done := p.subscribing(ctx)
		cancel()
		synctest.Wait()
		w.wantEnd()
		if err := <-done; !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
	})
}

package transport

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A dial that hangs, even for ever, keeps no caller for longer than the timeout, and a caller with less time
// leaves by itself. A call that still has time then gets another connection.
func TestDialHangs(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		forever := make(chan struct{})
		var dials atomic.Int64
		p.pool.Dial = func() (redis.Conn, error) {
			if dials.Add(1) > 2 { // the first dial hangs, and so does that of its probe
				return p.dial()
			}
			<-forever
			return nil, errors.New("no route")
		}
		a := p.ask(t.Context(), "a")
		hurried := p.hurry("hurried")
		hurried.wantError(context.DeadlineExceeded, false)
		hurried.wantTook(s)
		patient := p.ask(t.Context(), "patient")

		a.wantError(os.ErrDeadlineExceeded, false)
		a.wantTook(time.Minute)
		w := p.accept()
		w.serve(patient)
		close(forever)
	})
}

// A dial is cancelled when no caller needs it any more.
func TestDialIsCancelled(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		var took time.Duration
		p.pool.DialContext = func(ctx context.Context) (redis.Conn, error) {
			begun := time.Now()
			<-ctx.Done()
			took = time.Since(begun)
			return nil, ctx.Err()
		}
		a := p.ask(t.Context(), "a")
		a.wantError(os.ErrDeadlineExceeded, false)
		synctest.Wait()
		if took != time.Minute {
			t.Errorf("the dial had %v", took)
		}
		b := p.ask(t.Context(), "b")
		p.client.Close()
		b.wantError(os.ErrDeadlineExceeded, false)
	})
}

// A connection that is made after the last caller for it has left is not kept.
func TestDialIsLate(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		p.pool.Dial = func() (redis.Conn, error) { pause(61 * s); return p.dial() }
		p.ask(t.Context(), "a").wantError(os.ErrDeadlineExceeded, false)
		redistest.Elapse(10 * s)
		p.accept().wantEnd()
		p.accept().wantEnd()
	})
}

// If a connection cannot be made, all calls that wait for it fail. The next round trip tries again.
func TestDialFails(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		failed, fail := make(chan struct{}), errors.New("connection refused")
		p.pool.Dial = func() (redis.Conn, error) { <-failed; return nil, fail }
		all := p.crowd("a", "b", "c")
		p.pool.Dial = p.dial
		close(failed)
		for _, a := range all {
			a.wantError(fail, false)
			if !strings.Contains(a.err.Error(), "redis is unavailable: no connection: connection refused") {
				t.Error(a.err)
			}
		}
		p.wantServed("next")
	})
}

// A dial that began before a round trip came says nothing about the Redis that the round trip may meet. So the
// round trip gets a dial of its own, but only one.
func TestDialFailsThatBeganBefore(t *testing.T) {
	each(t, map[string]bool{"once": false, "twice": true}, func(t *testing.T, again bool) {
		p := newPuppet(t)
		var dials atomic.Int64
		fail := errors.New("WRONGPASS")
		p.pool.Dial = func() (redis.Conn, error) {
			pause(2 * s)
			if dials.Add(1) == 1 || again {
				return nil, fail
			}
			return p.dial()
		}
		early := p.ask(t.Context(), "early")
		redistest.Elapse(s)
		late := p.ask(t.Context(), "late")
		early.wantError(fail, false)
		if again {
			late.wantError(fail, false)
		} else {
			w := p.accept()
			w.serve(late)
		}
		late.wantTook(3 * s)
		if n := dials.Load(); n != 2 {
			t.Errorf("%d dials", n)
		}
	})
}

// If a pool cannot dial, for whatever reason, the error says why. A panic of its dial function does not end the
// process.
func TestNoConnection(t *testing.T) {
	t.Parallel()
	for want, pool := range map[string]*redis.Pool{
		"the pool is nil":        nil,
		"the pool cannot dial":   {},
		"returned no connection": {Dial: func() (redis.Conn, error) { return nil, nil }},
		"no configuration":       {Dial: func() (redis.Conn, error) { panic("no configuration") }},
		"dial memory": {Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", "nobody.memory:1", redis.DialContextFunc(memnet.DialContext))
		}},
	} {
		c := NewRedigo(pool, s)
		_, err := c.Do(t.Context(), "", Command{"PING"})
		_, subscribing := c.Subscribe(t.Context(), "c")
		for _, err := range []error{err, subscribing} {
			op, ok := errors.AsType[*net.OpError](err)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) || ok != (want == "dial memory") || ok && op.Op != "dial" {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

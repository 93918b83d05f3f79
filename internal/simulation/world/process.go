package world

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// A process is a server, from its start to its crash.
type process struct {
	world    *World
	number   int
	life     int // how often it has crashed before
	dead     bool
	died     time.Duration
	dialled  int
	sessions *middleware.Sessions
	handler  http.Handler
}

// start starts a process. The caller holds mu.
func (w *World) start(number, life int) *process {
	p := &process{world: w, number: number, life: life}
	o := w.plan.Options
	pool := &redis.Pool{
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", "redis:6379",
				redis.DialContextFunc(func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx) }),
				redis.DialReadTimeout(o.Timeout), redis.DialWriteTimeout(o.Timeout))
		},
	}
	redigo := newClient(p, transport.NewRedigo(pool, o.Timeout))
	sessions, err := middleware.New(store.NewOn(redigo, store.Options{Lease: o.Lease, Timeout: o.Timeout}), middleware.Options{
		Keys: [][]byte{signingKey},
		TTL:  o.TTL, Lifetime: o.Lifetime, LockWait: o.LockWait, MaxHold: o.MaxHold,
		MaxWaiters: o.MaxWaiters, MaxBytes: o.MaxBytes,
		MaxSessions: o.MaxSessions, RefuseLogin: o.RefuseLogin,
		Mode:    modeOf,
		OnError: failed,
		Logger:  slog.New(slog.DiscardHandler),

		Observers: p.observers(),
	})
	if err != nil {
		panic(err) // the plan has invalid options
	}
	p.sessions, p.handler = sessions, sessions.Handler(http.HandlerFunc(application))
	return p
}

var signingKey = []byte("every process has got the same key")

// failed is Options.OnError.
func failed(w http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r)
	c.failure = err
	w.WriteHeader(middleware.Status(err))
}

// crash ends a process at once: its connections are cut, and it gets no new ones. Its goroutines go on
// without any effect outside, and end by themselves.
func (p *process) crash() {
	p.dead, p.died = true, p.world.now()
	for _, c := range p.world.conns {
		if c.process == p && !c.closed {
			c.crack(reset)
			c.sendUp(c.travel(), c.hangUp)
		}
	}
}

// causeOf returns what an error means for the client.
func causeOf(err error) history.Cause {
	refused, _ := errors.AsType[redis.Error](err)
	switch {
	case err == nil:
		return history.None
	case strings.HasPrefix(string(refused), "ERR no such key"):
		return history.Unavailable // a copy of this commit, or a restart, has removed the staged record
	case strings.HasPrefix(string(refused), "ERR ") && !strings.Contains(string(refused), "can't run this command"):
		return history.Broken
	case is(err, session.ErrEnded): // also if that has cut a try short
		return history.Gone
	case is(err, store.ErrTimeout): // also if the last try got no reply in the remaining time
		return history.Timeout
	case is(err, store.ErrUnavailable):
		return history.Unavailable
	case is(err, store.ErrLost):
		return history.Lost
	case is(err, store.ErrTooManyWaiters):
		return history.TooMany
	case is(err, store.ErrConflict):
		return history.Conflict
	case is(err, store.ErrGone), is(err, store.ErrNotFound):
		return history.Gone
	case is(err, store.ErrTooManySessions):
		return history.Crowded
	case is(err, context.Canceled), is(err, context.DeadlineExceeded):
		return history.Cancelled
	}
	return history.Mistake
}

// This program of another module uses Latchkey as the design allows.
package main

import (
	"context"
	"errors"
	"iter"
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
	"github.com/gomodule/redigo/redis"
)

// A table is a locker.Algorithm in the memory of one process.
type table struct {
	mu      sync.Mutex
	holders map[string]string
}

func (l *table) Take(_ context.Context, key, token string, _ time.Duration) (locker.Attempt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if holder := l.holders[key]; holder != "" && holder != token {
		return locker.Attempt{Holder: holder}, nil
	}
	l.holders[key] = token
	return locker.Attempt{Taken: true}, nil
}

func (l *table) Extend(_ context.Context, key, token string, _ time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.holders[key] {
	case token:
		return nil
	case "":
		return locker.ErrExpired
	}
	return locker.ErrLost
}

func (l *table) Release(ctx context.Context, key, token string, _ time.Duration) error {
	if err := l.Extend(ctx, key, token, 0); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.holders, key)
	return nil
}

func (l *table) Valid(lease time.Duration) time.Duration { return lease }

// The names and signatures that are fixed.
var (
	_ func(context.Context) *session.Session                               = session.FromContext
	_ func(context.Context) (*session.Session, error)                      = session.Start
	_ func(context.Context, *session.Session) context.Context              = session.NewContext
	_ func(*session.Session, string) (int, bool)                           = session.Get[int]
	_ func(*session.Session, string) (string, bool)                        = session.Pop[string]
	_ func(string, store.Options) (*store.Store, error)                    = store.Open
	_ func(*redis.Pool, store.Options) *store.Store                        = store.New
	_ func(transport.Client, store.Options) *store.Store                   = store.NewOn
	_ func(store.Options) (*store.Store, error)                            = embedded.Open
	_ func(*redis.Pool, locker.Options) *locker.Spin                       = locker.NewSpin
	_ func(*redis.Pool, locker.Options) *locker.Timestamp                  = locker.NewTimestamp
	_ func([]*redis.Pool, locker.Options) *locker.Redlock                  = locker.NewRedlock
	_ func(locker.Algorithm, locker.Options) locker.Locker                 = locker.New
	_ func(*store.Store, middleware.Options) (*middleware.Sessions, error) = middleware.New

	_ interface {
		Set(key string, v any)
		Decode(key string, v any) error
		Delete(key string)
		Clear()
		Len() int
		Keys() iter.Seq[string]
		ID() string
		IsNew() bool
		Renew()
		Destroy()
		Commit(ctx context.Context) error
		Reopen(ctx context.Context) error
		Discard()
		Login(user string)
		User() string
		Remember(d time.Duration)
		Expires() time.Time
		Touch(ctx context.Context) error
	} = (*session.Session)(nil)

	_ interface {
		Handler(next http.Handler) http.Handler
		Passive(next http.Handler) http.Handler
		FromContext(ctx context.Context) *session.Session
		Update(ctx context.Context, id string, f func(*session.Session) error) error
		Peek(ctx context.Context, id string) (middleware.Info, error)
		List(ctx context.Context, user string) ([]middleware.Info, error)
		End(ctx context.Context, id string) error
		EndAll(ctx context.Context, user string, except ...string) (int, error)
	} = (*middleware.Sessions)(nil)

	_ interface {
		Unlock(ctx context.Context) error
		UnlockAfter(ctx context.Context, delay time.Duration) error
		Extend(ctx context.Context, d time.Duration) error
		Lost() <-chan struct{}
	} = (*locker.Lease)(nil)

	_ = []error{
		locker.ErrTimeout, locker.ErrLost, locker.ErrExpired, locker.ErrTooManyWaiters,
		store.ErrNotFound, store.ErrGone, store.ErrMoved, store.ErrCorrupt, store.ErrConflict, store.ErrTooLarge, store.ErrLost,
		store.ErrTimeout, store.ErrTooManyWaiters, store.ErrUnavailable, store.ErrTooManySessions,
		session.ErrAbsent, session.ErrType, session.ErrReadOnly, session.ErrClosed, session.ErrOpen,
		session.ErrEnded,
	}
)

func main() {
	jobs := locker.New(&table{holders: map[string]string{}}, locker.Options{Lease: time.Second, Wait: locker.NoWait})
	ctx := context.Background()
	lease, err := jobs.Lock(ctx, "job")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := jobs.Lock(ctx, "job"); !errors.Is(err, locker.ErrTimeout) {
		log.Fatal("locked twice: ", err)
	}
	if err := lease.Unlock(ctx); err != nil {
		log.Fatal(err)
	}

	st, err := store.Open("redis://127.0.0.1:1", store.Options{Prefix: "outside:", Timeout: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	sessions, err := middleware.New(st, middleware.Options{
		Keys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")},
		TTL:  time.Hour, Lifetime: 24 * time.Hour, LockWait: time.Second, MaxHold: time.Minute,
		Cookie:   http.Cookie{Name: "session", SameSite: http.SameSiteStrictMode},
		Mode:     func(*http.Request) middleware.Mode { return middleware.Exclusive },
		Label:    func(r *http.Request) string { return r.Method },
		GuestTTL: time.Minute, MaxBytes: 1 << 20, Buffer: 1 << 16,
		OnError: func(w http.ResponseWriter, _ *http.Request, err error) { http.Error(w, "", middleware.Status(err)) },
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = sessions.Handler(http.NotFoundHandler())
}

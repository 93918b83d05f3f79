package main

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/secret"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/session"
	"github.com/gomodule/redigo/redis"
)

// unlocked is the counter-example: sessions as ordinary stores keep them. Each request reads the record,
// changes its copy, and writes the copy back. Unless a lock stands around the requests, that overwrites what
// others have written meanwhile. The library itself has no such mode.
type unlocked struct {
	pool   *redis.Pool
	cookie string
	ttl    time.Duration
	log    *slog.Logger
}

func (u *unlocked) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visitor, data, err := u.load(r)
		if err != nil {
			u.fail(w, http.StatusServiceUnavailable, err)
			return
		}
		s := new(session.Session)
		if err := keep.Open(s, keep.Config{Data: data}); err != nil {
			u.fail(w, http.StatusInternalServerError, err)
			return
		}
		answer := &savedFirst{ResponseWriter: w, save: func() error {
			err := u.save(w, s, visitor)
			if err != nil {
				u.fail(w, http.StatusServiceUnavailable, err)
			}
			return err
		}}
		next.ServeHTTP(answer, r.WithContext(session.NewContext(r.Context(), s)))
		answer.begin()
	})
}

// fail logs err, and responds with an error that does not contain the address of Redis.
func (u *unlocked) fail(w http.ResponseWriter, status int, err error) {
	u.log.Error("session without a lock failed", "error", err)
	http.Error(w, "The session is not available just now.", status)
}

// around returns sessions whose requests run one after another, by a lock that stands around the handler and
// knows nothing of the session, as in the articles. A request that only reads, or begins a session, acquires
// no lock.
func (u *unlocked) around(l locker.Locker) sessions {
	return func(next http.Handler) http.Handler {
		next = u.handler(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			visitor, known := u.visitor(r)
			if !known || r.Method == http.MethodGet || r.Method == http.MethodHead {
				next.ServeHTTP(w, r)
				return
			}
			lease, err := l.Lock(r.Context(), u.key(visitor)+".lock")
			if err != nil {
				u.fail(w, http.StatusServiceUnavailable, err)
				return
			}
			defer lease.Unlock(r.Context())
			ctx, cancel := context.WithCancelCause(r.Context())
			defer cancel(nil)
			lease.OnLost(cancel)
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

// visitor returns the secret in the request's cookie, if there is a valid one.
func (u *unlocked) visitor(r *http.Request) (visitor secret.Secret, known bool) {
	cookie, err := r.Cookie(u.cookie)
	if err != nil {
		return visitor, false
	}
	b, _ := hex.DecodeString(cookie.Value) // Parse refuses a wrong value
	visitor, err = secret.Parse(b)
	return visitor, err == nil
}

func (u *unlocked) load(r *http.Request) (visitor secret.Secret, data []byte, err error) {
	visitor, known := u.visitor(r)
	if !known {
		return secret.New(), nil, nil
	}
	data, err = redis.Bytes(u.do("GET", u.key(visitor)))
	if errors.Is(err, redis.ErrNil) {
		return secret.New(), nil, nil
	}
	return visitor, data, err
}

func (u *unlocked) save(w http.ResponseWriter, s *session.Session, visitor secret.Secret) error {
	isNew := s.IsNew()
	change, err := keep.Close(s, "the answer")
	if err != nil || !change.Changed && !change.Destroyed && !change.Renewed {
		return err
	}
	if (change.Destroyed || change.Renewed) && !isNew {
		if _, err := u.do("DEL", u.key(visitor)); err != nil {
			return err
		}
		visitor = secret.New()
	}
	cookie := &http.Cookie{Name: u.cookie, Value: hex.EncodeToString(visitor.Bytes()), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if change.Destroyed {
		cookie.Value, cookie.MaxAge = "", -1
	} else if _, err := u.do("SET", u.key(visitor), change.Data(), "PX", u.ttl.Milliseconds()); err != nil {
		return err
	}
	if isNew || change.Renewed || change.Destroyed {
		http.SetCookie(w, cookie)
	}
	return nil
}

func (u *unlocked) key(visitor secret.Secret) string { return "latchkey-unlocked:" + visitor.ID() }

func (u *unlocked) do(command string, args ...any) (any, error) {
	conn := u.pool.Get()
	defer conn.Close()
	return conn.Do(command, args...)
}

// savedFirst saves the session before the first byte of the response.
type savedFirst struct {
	http.ResponseWriter
	save  func() error // responds itself if it fails
	begun bool
	err   error
}

func (w *savedFirst) begin() {
	if w.begun {
		return
	}
	w.begun, w.err = true, w.save()
}

func (w *savedFirst) WriteHeader(status int) {
	if w.begin(); w.err == nil {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *savedFirst) Write(p []byte) (int, error) {
	if w.begin(); w.err != nil {
		return 0, w.err
	}
	return w.ResponseWriter.Write(p)
}

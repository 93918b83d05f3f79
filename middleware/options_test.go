package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// Every wrong option is an error at start, which names the option and the rule.
func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()
	st := store.New(&redis.Pool{}, store.Options{})
	good := [][]byte{testKey}
	for _, c := range []struct {
		name string
		st   *store.Store
		o    middleware.Options
		says []string
	}{
		{"no store", nil, middleware.Options{Keys: good}, []string{"store is nil"}},
		{"bad store", store.New(nil, store.Options{}), middleware.Options{Keys: good}, []string{"pool is nil"}},
		{"bad store option", store.New(&redis.Pool{}, store.Options{Lease: -1}), middleware.Options{Keys: good}, []string{"Lease", "-1ns"}},
		{"bad prefix", store.New(&redis.Pool{}, store.Options{Prefix: "a{b}"}), middleware.Options{Keys: good}, []string{"Prefix", "braces"}},
		{"no key", st, middleware.Options{}, []string{"Keys", "at least 32"}},
		{"short key", st, middleware.Options{Keys: [][]byte{testKey, bytes.Repeat([]byte("s"), 31)}}, []string{"Keys[1]", "31 bytes", "at least 32"}},
		{"key of zeros", st, middleware.Options{Keys: [][]byte{testKey, make([]byte, 32)}}, []string{"Keys[1]", "32 times the same byte", "at least 32 random bytes"}},
		{"a key twice", st, middleware.Options{Keys: [][]byte{testKey, bytes.Clone(testKey)}}, []string{"Keys[1]", "twice"}},
		{"key of one byte", st, middleware.Options{Keys: [][]byte{bytes.Repeat([]byte("s"), 64)}}, []string{"Keys[0]", "64 times the same byte"}},
		{"TTL", st, middleware.Options{Keys: good, TTL: -time.Second}, []string{"TTL", "-1s"}},
		{"Lifetime", st, middleware.Options{Keys: good, Lifetime: -1}, []string{"Lifetime"}},
		{"LockWait", st, middleware.Options{Keys: good, LockWait: -1}, []string{"LockWait"}},
		{"MaxHold", st, middleware.Options{Keys: good, MaxHold: -1}, []string{"MaxHold"}},
		{"GuestTTL", st, middleware.Options{Keys: good, GuestTTL: -1}, []string{"GuestTTL"}},
		{"GuestTTL over TTL", st, middleware.Options{Keys: good, GuestTTL: time.Hour}, []string{"GuestTTL", "1h", "TTL", "30m"}},
		{"TTL over Lifetime", st, middleware.Options{Keys: good, TTL: 48 * time.Hour}, []string{"TTL", "48h", "Lifetime", "24h"}},
		{"MaxWaiters", st, middleware.Options{Keys: good, MaxWaiters: -1}, []string{"MaxWaiters"}},
		{"RefuseLogin without MaxSessions", st, middleware.Options{Keys: good, RefuseLogin: true}, []string{"Options.RefuseLogin", "MaxSessions"}},
		{"MaxBytes", st, middleware.Options{Keys: good, MaxBytes: -1}, []string{"MaxBytes"}},
		{"Buffer", st, middleware.Options{Keys: good, Buffer: -1}, []string{"Buffer"}},
		{"__Host- with Domain", st, cookie(http.Cookie{Name: "__Host-a", Secure: true, Domain: "a.org"}), []string{"__Host-", "Domain"}},
		{"default name with Domain", st, cookie(http.Cookie{Domain: "a.org"}), []string{"__Host-", "Domain"}},
		{"__Host- without Secure", st, cookie(http.Cookie{Name: "__Host-a"}), []string{"__Host-", "Secure"}},
		{"__Host- with Path", st, cookie(http.Cookie{Name: "__host-a", Secure: true, Path: "/a"}), []string{"__Host-", "Path"}},
		{"__Http- without Secure", st, cookie(http.Cookie{Name: "__Http-a"}), []string{"__Http-", "Secure"}},
		{"relative Path", st, cookie(http.Cookie{Name: "a", Path: "app"}), []string{"Path", "app", "begin with /"}},
		{"__Secure- without Secure", st, cookie(http.Cookie{Name: "__Secure-a"}), []string{"__Secure-", "Secure"}},
		{"SameSite=None without Secure", st, cookie(http.Cookie{Name: "a", SameSite: http.SameSiteNoneMode}), []string{"SameSite=None", "Secure"}},
		{"Partitioned without Secure", st, cookie(http.Cookie{Name: "a", Partitioned: true}), []string{"Partitioned", "Secure"}},
		{"Value", st, cookie(http.Cookie{Name: "a", Value: "b"}), []string{"Value"}},
		{"MaxAge", st, cookie(http.Cookie{Name: "a", MaxAge: -1}), []string{"MaxAge"}},
		{"Expires", st, cookie(http.Cookie{Name: "a", Expires: time.Now()}), []string{"Expires"}},
		{"SameSite", st, cookie(http.Cookie{Name: "a", SameSite: 9}), []string{"SameSite is 9"}},
		{"long name", st, cookie(http.Cookie{Name: strings.Repeat("a", 4000)}), []string{"Name has 4000 bytes", "3578"}},
		{"bad name", st, cookie(http.Cookie{Name: "a b"}), []string{"a b", "Name"}},
		{"bad name of tokens", st, token(http.Cookie{Name: "a b"}), []string{"a b"}},
		{"Secure tokens", st, token(http.Cookie{Name: "api", Secure: true}), []string{"only Name"}},
		{"MaxAge of tokens", st, token(http.Cookie{MaxAge: 3600}), []string{"only Name"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := middleware.New(c.st, c.o)
			if err == nil || s != nil {
				t.Fatal("accepted")
			}
			for _, text := range c.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
			if strings.Contains(err.Error(), "key key") || strings.Contains(err.Error(), "ssss") {
				t.Errorf("the error gives the key away: %q", err)
			}
		})
	}
}

func cookie(c http.Cookie) middleware.Options {
	return middleware.Options{Keys: [][]byte{testKey}, Cookie: c}
}

func token(c http.Cookie) middleware.Options {
	return middleware.Options{Keys: [][]byte{testKey}, Cookie: c, Token: middleware.Bearer}
}

// The status says whether another try may help.
func TestStatus(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{
		store.ErrTimeout:                          503,
		session.ErrEnded:                          409,
		store.ErrTooManyWaiters:                   503,
		store.ErrLost:                             503,
		store.ErrUnavailable:                      503,
		context.Canceled:                          503,
		context.DeadlineExceeded:                  503,
		store.ErrConflict:                         503,
		store.ErrGone:                             409,
		errors.Join(store.ErrGone, store.ErrLost): 409, // the session was ended while the request held it
		errors.Join(store.ErrGone, store.ErrUnavailable): 503, // the changes may have been saved before
		store.ErrTooManySessions:                         403,
		store.ErrNotFound:                                404,
		store.ErrTooLarge:                                500,
		store.ErrCorrupt:                                 500,
		session.ErrReadOnly:                              500,
		errors.New("else"):                               500,
	} {
		if got := middleware.Status(fmt.Errorf("store: taking: %w", err)); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

// OnError replaces the default response to an error, and nothing else.
func TestOnErrorAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{OnError: func(w http.ResponseWriter, _ *http.Request, err error) {
			w.WriteHeader(middleware.Status(err))
			fmt.Fprint(w, errors.Is(err, store.ErrUnavailable))
		}}, app())
		r.Stop(t)
		a := v.get(s.URL + "/add")
		a.want(t, 503, "true")
		if a.Header.Get("Retry-After") == "" || len(s.log.Lines("session failed")) != 1 {
			t.Errorf("%v\n%s", a.Header, s.log)
		}
	})
}

// P12: The largest number there is means "never", and no sum with it overflows. Otherwise each request would begin a
// new session, and read 1.
func TestTheLargestOptionsMeanNever(t *testing.T) {
	t.Parallel()
	const never time.Duration = math.MaxInt64
	r := redistest.Real(t)
	for name, o := range map[string]middleware.Options{
		"Lifetime": {Lifetime: never},
		"all": {TTL: never, Lifetime: never, LockWait: never, MaxHold: never,
			MaxWaiters: math.MaxInt, MaxBytes: math.MaxInt, Buffer: math.MaxInt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Mode = byPath(map[string]middleware.Mode{"/get": middleware.ReadOnly})
			mux := app()
			mux.HandleFunc("/copy", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.Copy(w, io.LimitReader(strings.NewReader("copied"), 9))
			})
			s, v := begun(t, r, o, mux)
			v.get(s.URL+"/add").want(t, 200, "2")
			v.get(s.URL+"/get").want(t, 200, "2")
			v.get(s.URL+"/login").want(t, 200, "")
			v.get(s.URL+"/add").want(t, 200, "3")
			v.get(s.URL+"/copy").want(t, 200, "copied")
		})
	}
}

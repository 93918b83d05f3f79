package migration

import (
	"encoding/gob"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/alexedwards/scs/goredisstore"
	"github.com/alexedwards/scs/v2"
	"github.com/boj/redistore"
	gin_sessions "github.com/gin-contrib/sessions"
	gin_cookie "github.com/gin-contrib/sessions/cookie"
	"github.com/gin-gonic/gin"
	"github.com/gorilla/sessions"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

func init() {
	gob.Register(address{}) // as programs with the old libraries do
	logging.Disable()       // it complains about things that the tests do on purpose
}

// patience is for machines that are busy with other tests.
const patience = 20 * time.Second

// An address is a value that a program has kept in its sessions.
type address struct {
	Street string
	Number int
}

// A library is a library from which a program moves.
type library struct {
	cookie string       // the name of its cookie
	login  http.Handler // what the program did: it logs ann in
	move   mover        // FromSCS or FromGorilla
	ends   bool         // the server can end its sessions
	lose   func()       // ends all sessions without telling the visitors
	files  bool         // the sessions are not in Redis
	// options are those of OptionsOfSCS or OptionsOfGorilla.
	options middleware.Options
}

type mover func(s *middleware.Sessions, adopt Adopt, next http.Handler) http.Handler

// libraries are all the libraries, with their sessions in r.
var libraries = map[string]func(t *testing.T, r *redistest.Server) library{
	"scs": func(t *testing.T, r *redistest.Server) library {
		_, l := newSCS(t, r)
		l.lose = func() { r.Do(t, "FLUSHALL") }
		return l
	},
	"gorilla, sessions in Redis": func(t *testing.T, r *redistest.Server) library {
		store, err := redistore.NewRediStoreWithPool(r.Pool(t, 4), make([]byte, 32))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		l := fromGorilla(store, store.Options, true)
		l.lose = func() { r.Do(t, "FLUSHALL") }
		return l
	},
	"gorilla, sessions in files": func(t *testing.T, _ *redistest.Server) library {
		dir := t.TempDir()
		store := sessions.NewFilesystemStore(dir, make([]byte, 32))
		l := fromGorilla(store, store.Options, true)
		l.files = true
		l.lose = func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		}
		return l
	},
	"gorilla, sessions in the cookie": func(*testing.T, *redistest.Server) library {
		store := sessions.NewCookieStore(make([]byte, 32))
		store.Options.Secure = false // over plain HTTP it would not come back
		l := fromGorilla(store, store.Options, false)
		l.lose = func() {}
		return l
	},
	"gin, sessions in the cookie": func(*testing.T, *redistest.Server) library {
		options := gin_sessions.Options{Path: "/", MaxAge: 30 * 24 * 3600, HttpOnly: true}
		store := gin_cookie.NewStore(make([]byte, 32))
		store.Options(options)
		l := fromGorilla(store, options.ToGorillaOptions(), false)
		engine := gin.New()
		engine.Use(gin_sessions.Sessions(l.cookie, store))
		engine.Any("/*path", func(c *gin.Context) {
			s := gin_sessions.Default(c)
			s.Set("user", "ann")
			s.Set("visits", 3)
			s.Set("address", address{"Main Street", 5})
			if err := s.Save(); err != nil {
				_ = c.AbortWithError(http.StatusInternalServerError, err)
			}
		})
		l.login, l.lose = engine, func() {}
		return l
	},
}

// blank is copied in bubbles, since New starts a goroutine that does not end.
var blank = *scs.New()

func newSCS(t *testing.T, r *redistest.Server) (*scs.SessionManager, library) {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: r.Addr, Dialer: memnet.DialContext, MaxRetries: -1, ReadTimeout: patience,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, // otherwise it asks DNS
	})
	t.Cleanup(func() { client.Close() })
	copied := blank
	manager := &copied
	manager.Store = goredisstore.New(client)
	login := func(_ http.ResponseWriter, r *http.Request) {
		if err := manager.RenewToken(r.Context()); err != nil {
			t.Error(err)
		}
		manager.Put(r.Context(), "user", "ann")
		manager.Put(r.Context(), "visits", 3)
		manager.Put(r.Context(), "address", address{"Main Street", 5})
	}
	return manager, library{
		cookie: manager.Cookie.Name,
		login:  manager.LoadAndSave(http.HandlerFunc(login)),
		move: func(s *middleware.Sessions, adopt Adopt, next http.Handler) http.Handler {
			return FromSCS(s, manager, adopt, next)
		},
		ends: true,

		options: OptionsOfSCS(manager),
	}
}

func fromGorilla(store sessions.Store, options *sessions.Options, ends bool) library {
	const name = "shop"
	login := func(w http.ResponseWriter, r *http.Request) {
		s, err := store.Get(r, name)
		s.Values["user"], s.Values["visits"], s.Values["address"] = "ann", 3, address{"Main Street", 5}
		if err == nil {
			err = s.Save(r, w)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
	return library{
		cookie: name,
		login:  http.HandlerFunc(login),
		move: func(s *middleware.Sessions, adopt Adopt, next http.Handler) http.Handler {
			return FromGorilla(s, store, name, adopt, next)
		},
		ends: ends,

		options: OptionsOfGorilla(options),
	}
}

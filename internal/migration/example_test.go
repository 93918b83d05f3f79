package migration

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/alexedwards/scs/v2"
	"github.com/gorilla/sessions"
)

var (
	st  *store.Store
	key []byte
	mux *http.ServeMux
)

func oldManager() *scs.SessionManager { return nil }

func oldStore() *sessions.CookieStore { return nil }

// deployed is when the program began to use Latchkey.
var deployed time.Time

func endedAll(context.Context, int) (time.Time, error) { return time.Time{}, nil }

func adopt(ctx context.Context, s *session.Session) error {
	user, ok := session.Get[int](s, "userID")
	if !ok {
		return nil
	}
	ended, err := endedAll(ctx, user) // from your database: when the password was last changed
	if err != nil || ended.After(deployed) {
		s.Clear() // the visitor has to log in again
		return err
	}
	s.Login(strconv.Itoa(user)) // from now on EndAll knows the session
	return nil
}

func ExampleFromSCS() {
	old := oldManager() // your *scs.SessionManager, with the Store, Codec and Cookie that it has now

	options := OptionsOfSCS(old)
	options.Keys, options.Mode = [][]byte{key}, middleware.ByMethod
	sessions, err := middleware.New(st, options)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(":8080", FromSCS(sessions, old, adopt, sessions.Handler(mux))))
}

func ExampleFromGorilla() {
	old := oldStore() // your *sessions.CookieStore, or any other store, with the keys and Options that it has now

	options := OptionsOfGorilla(old.Options)
	options.Keys, options.Mode = [][]byte{key}, middleware.ByMethod
	ours, err := middleware.New(st, options)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(":8080", FromGorilla(ours, old, "shop", adopt, ours.Handler(mux))))
}

func get[T any](s *session.Session, key string) T {
	v, _ := session.Get[T](s, key)
	return v
}

func ExampleLoggedIn() {
	mux.HandleFunc("GET /account", func(w http.ResponseWriter, r *http.Request) {
		user, ok := LoggedIn[int](session.FromContext(r.Context()), "userID")
		if !ok {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		fmt.Fprintln(w, "account of user", user)
	})
}

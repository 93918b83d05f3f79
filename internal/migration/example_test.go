package migration

import (
	"fmt"
	"log"
	"net/http"

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

func ExampleFromSCS() {
	old := oldManager() // your *scs.SessionManager, with the Store, Codec and Cookie that it has now

	options := OptionsOfSCS(old)
	options.Keys = [][]byte{key}
	sessions, err := middleware.New(st, options)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(":8080", FromSCS(sessions, old, sessions.Handler(mux))))
}

func ExampleFromGorilla() {
	old := oldStore() // your *sessions.CookieStore, or any other store, with the keys and Options that it has now

	options := OptionsOfGorilla(old.Options)
	options.Keys = [][]byte{key}
	ours, err := middleware.New(st, options)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(":8080", FromGorilla(ours, old, "shop", ours.Handler(mux))))
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

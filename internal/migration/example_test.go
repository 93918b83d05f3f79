package migration

import (
	"log"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	"github.com/alexedwards/scs/v2"
	"github.com/gorilla/sessions"
)

var (
	st  *store.Store
	key []byte
	mux http.Handler
)

func ExampleFromSCS() {
	var old *scs.SessionManager // with the Store, Codec and Cookie that it has now

	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{key}})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(":8080", FromSCS(sessions, old, sessions.Handler(mux))))
}

func ExampleFromGorilla() {
	var old sessions.Store // with the keys and Options that it has now

	ours, err := middleware.New(st, middleware.Options{Keys: [][]byte{key}})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(":8080", FromGorilla(ours, old, "shop", ours.Handler(mux))))
}

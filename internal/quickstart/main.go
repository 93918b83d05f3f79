package main

import (
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

func main() {
	st, err := store.Open(os.Getenv("REDIS_URL"), store.Options{})
	if os.Getenv("REDIS_URL") == "" {
		st, err = embedded.Open(store.Options{}) // a Redis inside this program, for development
	}
	if err != nil {
		log.Fatal(err)
	}
	sessions, err := middleware.New(st, middleware.Options{
		Keys:   [][]byte{[]byte(os.Getenv("SESSION_KEY"))}, // at least 32 random bytes
		Cookie: http.Cookie{Name: "session"},               // for plain HTTP; drop this line behind HTTPS
		Mode:   middleware.ByMethod,                        // a GET that only reads waits for no other request
	})
	if err != nil {
		log.Fatal(err, "\nThis makes a key: export SESSION_KEY=$(openssl rand -base64 32)")
	}
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { // browsers ask for /favicon.ico, too
		s := session.FromContext(r.Context())
		visits, _ := session.Get[int](s, "visits")
		s.Set("visits", visits+1)
		fmt.Fprintln(w, "visit", visits+1)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", sessions.Handler(http.DefaultServeMux)))
}

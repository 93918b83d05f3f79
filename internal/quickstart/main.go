package main

import (
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

func main() {
	st, err := store.Open("redis://127.0.0.1:6379", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	sessions, err := middleware.New(st, middleware.Options{
		Keys:   [][]byte{[]byte(os.Getenv("SESSION_KEY"))}, // at least 32 random bytes
		Cookie: http.Cookie{Name: "session"},               // for plain HTTP; drop this line behind HTTPS
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { // not /favicon.ico
		s := session.FromContext(r.Context())
		visits, _ := session.Get[int](s, "visits")
		s.Set("visits", visits+1)
		fmt.Fprintln(w, "visit", visits+1)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", sessions.Handler(mux)))
}

package main // It needs REDIS_URL, SESSION_KEY and ADDR in the environment.

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
	st, err := store.Open(os.Getenv("REDIS_URL"), store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	sessions, err := middleware.New(st, middleware.Options{
		Keys: [][]byte{[]byte(os.Getenv("SESSION_KEY"))}, Mode: middleware.ByMethod,
		Cookie: http.Cookie{Name: "session"}, // for plain HTTP; drop this line behind HTTPS
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login(r.PostFormValue("user"))
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		visits, _ := session.Get[int](s, "visits")
		s.Set("visits", visits+1)
		fmt.Fprintln(w, s.User(), visits+1)
	})
	mux.HandleFunc("POST /panic", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("visits", -1)
		panic("nothing of this request is saved")
	})
	handler := middleware.Recoverer(http.NewCrossOriginProtection().Handler(sessions.Handler(mux)))
	log.Fatal(http.ListenAndServe(os.Getenv("ADDR"), handler))
}

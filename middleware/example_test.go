package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

var (
	key    []byte
	oldKey []byte
	mux    = http.NewServeMux()
	server http.Server

	sessions                    *middleware.Sessions
	showCart, addToCart, images http.Handler
)

func checkPassword(r *http.Request) (user string, ok bool) {
	return r.PostFormValue("user"), r.PostFormValue("password") == "open sesame"
}

func sendMail(context.Context, string) error { return nil }

// A page is shown without waiting for anybody, even if it now and then writes. A route that needs
// no session has none.
func ExampleSessions_Optimistic() {
	mux.Handle("GET /cart", sessions.Optimistic(showCart))
	mux.Handle("POST /cart", addToCart)
	mux.Handle("GET /images/", sessions.None(images))
	log.Fatal(http.ListenAndServe(":8080", sessions.Handler(mux)))
}

// Where a router cannot be asked for its route, the request says how it uses its session.
func ExampleOptions_mode() {
	_ = middleware.Options{
		Keys: [][]byte{key},
		Mode: func(r *http.Request) middleware.Mode {
			switch {
			case strings.HasPrefix(r.URL.Path, "/static/"):
				return middleware.None
			case r.Method == http.MethodGet:
				return middleware.Optimistic
			default:
				return middleware.Exclusive
			}
		},
	}
}

// A login gives the session a new id, and a logout ends it. A page of another site must not be
// able to do either.
func Example_login() {
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		user, ok := checkPassword(r)
		if !ok {
			http.Error(w, "wrong password", http.StatusForbidden)
			return
		}
		session.FromContext(r.Context()).Login(user) // an id from before it is worth nothing after it
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Destroy()
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	// Without this, another site's form could log the visitor in as somebody else.
	server.Handler = http.NewCrossOriginProtection().Handler(sessions.Handler(mux))
}

// Who ticks "remember me" stays logged in when the browser is closed.
func Example_remember() {
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		user, ok := checkPassword(r)
		if !ok {
			http.Error(w, "wrong password", http.StatusForbidden)
			return
		}
		s := session.FromContext(r.Context())
		s.Login(user)
		if r.PostFormValue("remember") != "" {
			s.Remember(30 * 24 * time.Hour)
		}
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
}

// Slow work that no longer needs the session should not hold it.
func Example_commit() {
	mux.HandleFunc("POST /order", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		cart, _ := session.Pop[[]string](s, "cart")
		if err := s.Commit(r.Context()); err != nil {
			return // the answer is that error, whatever is written here
		}
		if err := sendMail(r.Context(), strings.Join(cart, ", ")); err != nil {
			http.Error(w, "ordered, but the mail was not sent", http.StatusAccepted)
			return
		}
		fmt.Fprintln(w, "ordered")
	})
}

// In mode Lazy a handler opens the session when it needs it, and decides itself
// what to do where that fails.
func Example_lazy() {
	mux.HandleFunc("GET /feed", func(w http.ResponseWriter, r *http.Request) {
		s, err := session.Start(r.Context())
		if errors.Is(err, store.ErrTimeout) {
			http.Error(w, "busy, try again", http.StatusServiceUnavailable)
			return
		}
		if err != nil {
			http.Error(w, "no session", middleware.Status(err))
			return
		}
		fmt.Fprintln(w, "opened", s.ID())
	})
}

// A custom page for errors, which are logged already.
func ExampleOptions_onError() {
	_ = middleware.Options{
		Keys: [][]byte{key, oldKey}, // the first one signs, both verify
		OnError: func(w http.ResponseWriter, r *http.Request, err error) {
			w.WriteHeader(middleware.Status(err))
			fmt.Fprintln(w, "<h1>Please try again</h1>")
		},
		OnCorrupt: func(r *http.Request, err error) error {
			slog.Error("a session was damaged", "error", err)
			return nil // begin an empty one
		},
	}
}

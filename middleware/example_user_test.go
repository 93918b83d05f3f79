package middleware_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

func changePassword(r *http.Request, _ string) bool { return r.PostFormValue("new") != "" }

func hashOf(string) string { return "$argon2id$v=19$…" }

// A page of my devices, with a button for each.
func ExampleSessions_List() {
	devices := func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if s.User() == "" {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		list, err := sessions.List(r.Context(), s.User())
		if err != nil {
			slog.ErrorContext(r.Context(), "my devices", "error", err)
			http.Error(w, "please try again", middleware.Status(err))
			return
		}
		for _, d := range list {
			seen := "not known"
			if !d.Seen.IsZero() {
				seen = d.Seen.Format(time.DateTime)
			}
			fmt.Fprintln(w, d.ID, d.Device, d.Created, seen, d.Expires, d.ID == s.ID()) // true: this one
		}
	}
	mux.Handle("GET /devices", sessions.Optimistic(http.HandlerFunc(devices)))
	mux.HandleFunc("POST /devices/end", func(w http.ResponseWriter, r *http.Request) {
		s, id := session.FromContext(r.Context()), r.PostFormValue("id")
		list, err := sessions.List(r.Context(), s.User())
		isTheirs := slices.ContainsFunc(list, func(d middleware.Info) bool { return d.ID == id })
		if err == nil && isTheirs { // nobody may end what is another's
			err = sessions.End(r.Context(), id)
		}
		if err != nil {
			slog.ErrorContext(r.Context(), "ending a session", "id", id, "error", err)
			http.Error(w, "please try again", middleware.Status(err))
			return
		}
		http.Redirect(w, r, "/devices", http.StatusSeeOther)
	})
}

// After a new password, all other sessions of the user end.
func ExampleSessions_EndAll() {
	mux.HandleFunc("POST /password", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if !changePassword(r, s.User()) { // first, so that no login with the old one begins after EndAll
			http.Error(w, "wrong password", http.StatusForbidden)
			return
		}
		if _, err := sessions.EndAll(r.Context(), s.User(), s.ID()); err != nil {
			slog.ErrorContext(r.Context(), "ending other sessions", "user", s.User(), "error", err)
			http.Error(w, "changed, but you may still be logged in elsewhere", middleware.Status(err))
			return
		}
		s.Renew()
		http.Redirect(w, r, "/devices", http.StatusSeeOther)
	})
}

// Log out everywhere, here, too.
func ExampleSessions_EndAll_everywhere() {
	mux.HandleFunc("POST /logout-everywhere", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if user := s.User(); user != "" {
			if _, err := sessions.EndAll(r.Context(), user); err != nil {
				slog.ErrorContext(r.Context(), "log out everywhere", "user", user, "error", err)
				http.Error(w, "you may still be logged in, please try again", middleware.Status(err))
				return
			}
		}
		s.Destroy() // so that this client forgets its cookie
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
}

// Where the password may change while it is checked, a login looks once more when its session is on the
// user's list.
func ExampleSessions_End() {
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		hash := hashOf(r.PostFormValue("user")) // before it is checked
		user, ok := checkPassword(r)
		if !ok {
			http.Error(w, "wrong password", http.StatusForbidden)
			return
		}
		s := session.FromContext(r.Context())
		s.Login(user)
		if err := s.Commit(r.Context()); err != nil {
			return // the answer is that error, whatever is written here
		}
		if hashOf(user) != hash { // EndAll may have come too early for this session
			if err := sessions.End(r.Context(), s.ID()); err != nil {
				slog.ErrorContext(r.Context(), "a login with the old password", "error", err)
				panic(http.ErrAbortHandler) // so that the client does not get the cookie
			}
			http.Error(w, "wrong password", http.StatusForbidden)
			return
		}
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
}

// What a user's list says of where a session began.
func ExampleOptions_device() {
	_ = middleware.Options{
		Keys:   [][]byte{key},
		Device: func(r *http.Request) string { return r.UserAgent() },
	}
}

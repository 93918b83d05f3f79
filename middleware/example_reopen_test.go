package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/coder/websocket"
)

func keepPicture(string, io.Reader) (name string, err error) { return "", nil }

func charge(context.Context) error { return nil }

// An upload takes its time. The session is asked who the visitor is before, is free meanwhile, and
// is opened again to save what has come.
func Example_upload() {
	mux.HandleFunc("POST /picture", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		user := s.User()
		if user == "" {
			http.Error(w, "please log in", http.StatusForbidden)
			return
		}
		if err := s.Commit(r.Context()); err != nil {
			return // the answer is that error, whatever is written here
		}
		picture, err := keepPicture(user, r.Body)
		if err != nil {
			http.Error(w, "please send it again", http.StatusBadRequest)
			return
		}
		if err := s.Reopen(r.Context()); err != nil {
			http.Error(w, "please choose the picture again", middleware.Status(err))
			return
		}
		s.Set("picture", picture)
		http.Redirect(w, r, "/me", http.StatusSeeOther)
	})
}

// A message for the next page, after slow work.
func Example_flash() {
	mux.HandleFunc("POST /pay", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if err := s.Commit(r.Context()); err != nil {
			return
		}
		message := "Thank you."
		if err := charge(r.Context()); err != nil {
			message = "That did not work. Nothing was charged."
		}
		if err := s.Reopen(r.Context()); err != nil {
			http.Error(w, message, middleware.Status(err))
			return
		}
		s.Set("flash", message)
		http.Redirect(w, r, "/orders", http.StatusSeeOther)
	})
}

// A websocket opens its session for each message, long after it has begun, and holds it only for
// that.
func Example_websocket() {
	mux.HandleFunc("GET /chat", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		conn, err := websocket.Accept(w, r, nil) // which commits the session
		if err != nil {
			return
		}
		defer conn.CloseNow()
		for {
			_, _, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			if err := s.Reopen(r.Context()); errors.Is(err, store.ErrGone) {
				_ = conn.Close(websocket.StatusPolicyViolation, "logged out")
				return
			} else if err != nil {
				continue // it is logged; the next message may find the session free
			}
			n, _ := session.Get[int](s, "messages")
			s.Set("messages", n+1)
			if err := s.Commit(r.Context()); err != nil {
				return
			}
		}
	})
}

// A job changes a session by its public id, which was put into the job.
func ExampleSessions_Update() {
	shipped := func(ctx context.Context, id, order string) error {
		err := sessions.Update(ctx, id, func(s *session.Session) error {
			s.Set("flash", fmt.Sprintf("Order %s is on its way.", order))
			return nil
		})
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrGone) {
			return nil // nobody is there to read it
		}
		return err
	}
	if err := shipped(context.Background(), "GJD0Gx0zZ6Qx5X2mYpNnCw", "4711"); err != nil {
		slog.Error("the visitor does not know", "error", err)
	}
}

// A framework whose recovery is inside the sessions answers a panic with a 500. What was done by
// then is not saved.
func ExampleOptions_discard() {
	_ = middleware.Options{
		Keys:    [][]byte{key},
		Discard: func(status int) bool { return status >= 500 },
	}
}

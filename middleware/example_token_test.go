package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

var errNotLoggedIn = errors.New("not logged in")

// A program keeps a token, which the login gives it, and sends it with each request.
func ExampleOptions_token() {
	_ = middleware.Options{
		Keys:  [][]byte{key},
		Token: middleware.Bearer, // Authorization: Bearer …
	}

	mux.HandleFunc("POST /api/login", func(w http.ResponseWriter, r *http.Request) {
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
		token, err := sessions.Token(r.Context())
		if err != nil {
			http.Error(w, "no token", http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"token": token})
	})
}

// A server of another kind, as of gRPC, finds the token where its clients put it.
func ExampleSessions_ID() {
	count := func(ctx context.Context, token string) error {
		id, ok := sessions.ID(token)
		if !ok {
			return errNotLoggedIn
		}
		return sessions.Update(ctx, id, func(s *session.Session) error {
			calls, _ := session.Get[int](s, "calls")
			s.Set("calls", calls+1)
			return nil
		})
	}
	_ = count(context.Background(), "")
}

// An audit log has a line for each session that begins, gets another id, or ends.
func ExampleHooks() {
	_ = middleware.Options{
		Keys: [][]byte{key},
		Hooks: middleware.Hooks{
			Begin: func(ctx context.Context, id string) { slog.InfoContext(ctx, "session begins", "id", id) },
			Renew: func(ctx context.Context, old, id string) {
				user := session.FromContext(ctx).User()
				slog.InfoContext(ctx, "new id", "user", user, "id", id, "before", old)
			},
			End: func(ctx context.Context, id string) { slog.InfoContext(ctx, "logout", "id", id) },
		},
	}
}

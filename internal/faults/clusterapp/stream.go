package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// stream sends a line with the session's public ID, and stays. When its context ends, it sends a line with the cause.
// Without a session it is refused.
func stream(w http.ResponseWriter, r *http.Request, s *session.Session) {
	if s.IsNew() {
		http.Error(w, "There is no session.", http.StatusNotFound)
		return
	}
	fmt.Fprintln(w, s.ID())
	if err := http.NewResponseController(w).Flush(); err != nil {
		return // the client has gone
	}
	<-r.Context().Done()
	fmt.Fprintln(w, context.Cause(r.Context()))
}

// end ends the session with a public ID. It also succeeds if the session has ended already, since an earlier
// response may have been lost.
func end(s *middleware.Sessions) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := s.End(r.Context(), r.FormValue("id"))
		if err != nil && !errors.Is(err, store.ErrGone) && !errors.Is(err, store.ErrNotFound) {
			http.Error(w, err.Error(), middleware.Status(err))
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// endAll ends all sessions of a user.
func endAll(s *middleware.Sessions) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n, err := s.EndAll(r.Context(), r.FormValue("user"))
		if err != nil {
			http.Error(w, err.Error(), middleware.Status(err))
			return
		}
		fmt.Fprintln(w, n)
	}
}

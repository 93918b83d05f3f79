package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/session"
)

// lookEvery is how often an open stream looks at the list of devices.
const lookEvery = 2 * time.Second

// live is a stream of events for the page of devices, which lasts as long as its session:
//
//	devices  the IDs of the listed sessions, with spaces between them; at first, after each change, and after away
//	away     the list is not available just now; the stream looks again
//	ended    the session has ended
//
// If nobody is signed in, the response is a 204: after that an EventSource does not connect again. The stream also
// ends when the program stops, since a shutdown waits for all requests.
func (d devices) live(w http.ResponseWriter, r *http.Request) {
	user := session.FromContext(r.Context()).User()
	if user == "" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for told := ""; ; {
		ids, err := d.ids(r.Context(), user)
		event := fmt.Sprintf("event: devices\ndata: %s\n\n", ids)
		if err != nil { // the next look may succeed
			event = "event: away\ndata:\n\n"
		}
		if event != told && r.Context().Err() == nil {
			told = event
			fmt.Fprint(w, event)
		}
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-look.C:
		case <-d.stopping.Done():
			return
		case <-r.Context().Done():
			if errors.Is(context.Cause(r.Context()), session.ErrEnded) {
				fmt.Fprint(w, "event: ended\ndata:\n\n") // sent when the handler returns
			}
			return
		}
	}
}

func (d devices) ids(ctx context.Context, user string) (string, error) {
	list, err := d.sessions.List(ctx, user)
	var ids []string
	for _, info := range list {
		ids = append(ids, info.ID)
	}
	return strings.Join(ids, " "), err
}

// who responds with the name of the user who is signed in, or with an empty line.
func who(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, session.FromContext(r.Context()).User())
}

// A browser that has signed in keeps signedIn until it signs out. With it the page can tell guests from users whose
// session has ended: the session itself is gone by then, and a guest who has a new ID has a member's cookie, too.
const signedIn = mainCookie + "-signed-in"

// markSignedIn sets or deletes signedIn. With -lock none and others, the first page has a session of its own, and
// logging out of that deletes signedIn, too: then the second page may say too little, but nothing untrue.
func markSignedIn(w http.ResponseWriter, in bool) {
	cookie := http.Cookie{Name: signedIn, Value: "1", Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if !in {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, &cookie)
}

// isOver reports whether the browser was signed in, and its session has ended by something else than its own click.
// Then the member's cookie is still there, since nothing but a login or a logout deletes it.
func isOver(r *http.Request) bool {
	_, noMember := r.Cookie(mainCookie + "-login")
	_, noMark := r.Cookie(signedIn)
	return session.FromContext(r.Context()).User() == "" && noMember == nil && noMark == nil
}

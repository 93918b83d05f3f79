package middleware_test

import (
	"fmt"
	"html"
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

func saveProfile(*http.Request) error { return nil }

// A message that the next page shows once.
func Example_flashOnce() {
	mux.HandleFunc("POST /profile", func(w http.ResponseWriter, r *http.Request) {
		message := "Saved."
		if err := saveProfile(r); err != nil {
			message = "That did not work, please try again."
		}
		session.FromContext(r.Context()).Set("flash", message)
		http.Redirect(w, r, "/profile", http.StatusSeeOther)
	})
	mux.HandleFunc("GET /profile", func(w http.ResponseWriter, r *http.Request) {
		if message, ok := session.Pop[string](session.FromContext(r.Context()), "flash"); ok {
			fmt.Fprintf(w, "<p>%s</p>", html.EscapeString(message))
		}
	})
}

type Flash struct{ Kind, Text string }

func addFlash(s *session.Session, kind, text string) {
	all, _ := session.Get[[]Flash](s, "flashes")
	s.Set("flashes", append(all, Flash{kind, text}))
}

func flashes(s *session.Session) []Flash {
	all, _ := session.Pop[[]Flash](s, "flashes")
	return all
}

// Messages of several kinds are kept in their order, and each is shown once.
func TestFlashesAreShownOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := http.NewServeMux()
		handle(mux, "POST /order", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
			addFlash(s, "success", "ordered")
			addFlash(s, "warning", "the last one")
		})
		handle(mux, "GET /", func(s *session.Session, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, flashes(s)) })
		site := newSite(t, r.Pool(t, 4), middleware.Options{Mode: middleware.ByMethod}, mux)
		v := newVisitor(t)
		v.post(site.URL+"/order").want(t, 200, "")
		v.get(site.URL+"/").want(t, 200, "[{success ordered} {warning the last one}]")
		v.get(site.URL+"/").want(t, 200, "[]")
	})
}

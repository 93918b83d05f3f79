package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// maxName is how many bytes the name of a user of the demo may have.
const maxName = 64

// devices is the second page: users see and end their own sessions. There is no password, since this is a
// demo.
type devices struct {
	sessions *middleware.Sessions
	log      *slog.Logger
	stopping context.Context // ends when the program stops
}

func (d devices) mount(mux *http.ServeMux) {
	for pattern, handler := range map[string]http.HandlerFunc{
		"POST /devices/sign-in":    d.signIn,
		"POST /devices/end":        d.end,
		"POST /devices/end-others": d.endOthers,
		"POST /devices/end-all":    d.endAll,
	} {
		mux.Handle(pattern, d.sessions.Handler(handler))
	}
	show := d.sessions.Optimistic(http.HandlerFunc(d.show))
	mux.Handle("GET /devices", show)
	// A page sends these by itself, so they do not keep its session alive.
	mux.Handle("GET /devices/now", d.sessions.Passive(show))
	mux.Handle("GET /devices/live", d.sessions.Passive(d.sessions.ReadOnly(http.HandlerFunc(d.live))))
	mux.Handle("GET /user", d.sessions.Passive(d.sessions.ReadOnly(http.HandlerFunc(who))))
}

func (d devices) signIn(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimSpace(strings.ToValidUTF8(r.PostFormValue("name"), ""))
	if name == "" || len(name) > maxName {
		sorry(w, r, fmt.Sprintf("A name must have 1 to %d bytes.", maxName), http.StatusBadRequest)
		return
	}
	session.FromContext(r.Context()).Login(name)
	markSignedIn(w, true)
	back(w, r)
}

// end ends one of the user's own sessions. An ID that is not in the user's list is ignored: another device
// may have ended that session meanwhile, or it may belong to another user.
func (d devices) end(w http.ResponseWriter, r *http.Request) {
	s, id := session.FromContext(r.Context()), r.PostFormValue("id")
	list, ok := d.list(w, r, s.User())
	if !ok {
		return
	}
	for _, info := range list {
		switch {
		case info.ID != id:
		case id == s.ID():
			s.Destroy() // also deletes the cookie
			markSignedIn(w, false)
		default:
			if err := d.sessions.End(r.Context(), id); d.failed(w, r, err) {
				return
			}
		}
	}
	back(w, r)
}

func (d devices) endOthers(w http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	if user := s.User(); user != "" {
		if _, err := d.sessions.EndAll(r.Context(), user, s.ID()); d.failed(w, r, err) {
			return
		}
		s.Renew()
	}
	back(w, r)
}

func (d devices) endAll(w http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	if user := s.User(); user != "" {
		if _, err := d.sessions.EndAll(r.Context(), user); d.failed(w, r, err) {
			return
		}
		s.Destroy()
		markSignedIn(w, false)
	}
	back(w, r)
}

// list returns the user's sessions. It returns false after it has responded with an error.
func (d devices) list(w http.ResponseWriter, r *http.Request, user string) ([]middleware.Info, bool) {
	if user == "" {
		return nil, true
	}
	list, err := d.sessions.List(r.Context(), user)
	return list, !d.failed(w, r, err)
}

// failed responds with an error page if err is not nil.
func (d devices) failed(w http.ResponseWriter, r *http.Request, err error) bool {
	if err == nil || errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrNotFound) { // already ended, as wanted
		return false
	}
	d.log.Error("listing or ending a user's sessions failed", "error", err)
	sorryFor(w, r, err)
	return true
}

// sorryFor is middleware.Options.OnError of the second page.
func sorryFor(w http.ResponseWriter, r *http.Request, err error) {
	status, text := middleware.Status(err), "That did not work. Please look again."
	if status == http.StatusServiceUnavailable {
		text = "Your sessions are not available just now. Please try again."
	}
	sorry(w, r, text, status)
}

// sorry responds with the page, with an error in place of the sessions.
func sorry(w http.ResponseWriter, r *http.Request, text string, status int) {
	base := ""
	if r.URL.Path != "/devices" {
		base = "../" // of the page's links: the page may be below any path
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = devicesPage.Execute(w, map[string]any{"Sorry": text, "Base": base}) // the client may be gone
}

func back(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/devices", http.StatusSeeOther)
}

//go:embed devices.html
var devicesHTML string

var devicesPage = template.Must(template.New("devices").Parse(devicesHTML))

// A listed session, as the page shows it.
type listed struct {
	ID, Device             string
	Created, Seen, Expires moment
	This                   bool // the session of this request
}

// A moment is a time, for people and for programs.
type moment struct{ Words, Exact string }

func (d devices) show(w http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	infos, ok := d.list(w, r, s.User())
	if !ok {
		return
	}
	now := time.Now()
	var list []listed
	for _, info := range infos {
		list = append(list, listed{info.ID, info.Device, at(info.Created, now), at(info.Seen, now), at(info.Expires, now), info.ID == s.ID()})
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = devicesPage.Execute(w, map[string]any{ // into the buffer of the sessions: no write error
		"User": s.User(), "Sessions": list, "MaxName": maxName,
		"Over": isOver(r),
	})
}

// at describes t in words.
func at(t, now time.Time) moment {
	if t.IsZero() {
		return moment{Words: "not known"}
	}
	words := "just now"
	switch d := now.Sub(t); {
	case d >= time.Minute:
		words = amount(d) + " ago"
	case d <= -time.Minute:
		words = "in " + amount(-d)
	case d < 0:
		words = "within a minute"
	}
	return moment{words, t.UTC().Format(time.RFC3339)}
}

// amount writes a time of a minute or more, in the largest unit of which there are at least two, or in minutes.
func amount(d time.Duration) string {
	for _, unit := range []struct {
		name string
		of   time.Duration
	}{{"days", 24 * time.Hour}, {"hours", time.Hour}, {"minutes", time.Minute}} {
		if n := d.Round(unit.of/2) / unit.of; n >= 2 {
			return fmt.Sprintf("%d %s", n, unit.name)
		}
	}
	return "a minute"
}

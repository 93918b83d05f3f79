package middleware_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/coder/websocket"
)

var (
	key    []byte
	oldKey []byte
	mux    = http.NewServeMux()
	server http.Server

	sessions, web, api          *middleware.Sessions
	showCart, addToCart, images http.Handler
	unread                      http.Handler
)

func checkPassword(r *http.Request) (user string, ok bool) {
	return r.PostFormValue("user"), r.PostFormValue("password") == "open sesame"
}

func sendMail(context.Context, string) error { return nil }

func eventsOf(context.Context, string) <-chan string { return nil }

func answerPrices(context.Context, *websocket.Conn) {}

// A page is shown without waiting for anybody, even if it now and then writes. A route that needs
// no session has none.
func Example_routes() {
	mux.Handle("GET /cart", sessions.Optimistic(showCart))
	mux.Handle("POST /cart", addToCart)
	mux.Handle("GET /images/", sessions.None(images))
	log.Fatal(http.ListenAndServe(":8080", sessions.Handler(mux)))
}

// The page of who holds and who waits is on an address of its own, which only the operator reaches.
func Example_debug() {
	debug := http.NewServeMux()
	debug.Handle("GET /debug/sessions", sessions.Debug())
	go func() { log.Fatal(http.ListenAndServe("127.0.0.1:6060", debug)) }()
}

// If a router cannot be asked for its route, the request says how it uses its session.
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

// A login gives the session a new ID, and a logout ends it. A page of another site must not be
// able to do either.
func Example_login() {
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		user, ok := checkPassword(r)
		if !ok {
			http.Error(w, "wrong password", http.StatusForbidden)
			return
		}
		session.FromContext(r.Context()).Login(user) // gives the session a new ID: one planted before is worthless
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Destroy()
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	// Without this, another site's form could log the visitor in as another user.
	server.Handler = middleware.Recoverer(http.NewCrossOriginProtection().Handler(sessions.Handler(mux)))
}

// A visitor who ticks "remember me" stays logged in when the browser is closed.
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
			return // the response is that error, whatever is written here
		}
		if err := sendMail(r.Context(), strings.Join(cart, ", ")); err != nil {
			http.Error(w, "ordered, but the mail was not sent", http.StatusAccepted)
			return
		}
		fmt.Fprintln(w, "ordered")
	})
}

// In mode Lazy a handler opens the session when it needs it, and decides itself what to do if that fails.
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
func Example_errorPage() {
	_ = middleware.Options{
		Keys: [][]byte{key, oldKey}, // the first key signs, both verify
		OnError: func(w http.ResponseWriter, r *http.Request, err error) {
			w.WriteHeader(middleware.Status(err))
			fmt.Fprintln(w, "<h1>Please try again</h1>")
		},
		OnCorrupt: func(r *http.Request, err error) error {
			slog.Error("a session was damaged", "error", err)
			return nil // go on with an empty session
		},
	}
}

func keepPicture(string, io.Reader) (name string, err error) { return "", nil }

func charge(context.Context) error { return nil }

// An upload takes long. The handler first asks the session who the visitor is. The session is free during the upload,
// and is opened again to save what has come.
func Example_upload() {
	mux.HandleFunc("POST /picture", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		user := s.User()
		if user == "" {
			http.Error(w, "please log in", http.StatusForbidden)
			return
		}
		if err := s.Commit(r.Context()); err != nil {
			return // the response is that error, whatever is written here
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

// A websocket opens its session for each message, long after its request has begun, and holds it only for that
// message.
func Example_websocket() {
	mux.HandleFunc("GET /chat", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		conn, err := websocket.Accept(w, r, nil) // this commits the session
		if err != nil {
			return
		}
		defer conn.CloseNow()
		for {
			_, _, err := conn.Read(context.WithoutCancel(r.Context())) // the client is told below if the session ends
			if err != nil {
				return
			}
			switch err := s.Reopen(r.Context()); {
			case errors.Is(err, store.ErrMoved): // the browser has the new cookie, perhaps of a login in another tab
				_ = conn.Close(websocket.StatusServiceRestart, "connect again")
				return
			case errors.Is(err, store.ErrGone):
				_ = conn.Close(websocket.StatusPolicyViolation, "logged out")
				return
			case err != nil:
				continue // it is logged; the session may be free at the next message
			}
			n, _ := session.Get[int](s, "messages")
			s.Set("messages", n+1)
			if err := s.Commit(r.Context()); err != nil {
				return
			}
		}
	})
}

// A stream of events ends with its session.
func Example_events() {
	mux.Handle("GET /events", sessions.ReadOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := session.FromContext(r.Context()).User()
		if user == "" {
			w.WriteHeader(http.StatusNoContent) // an EventSource that has connected again stops
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		events := eventsOf(r.Context(), user)
		for http.NewResponseController(w).Flush() == nil { // at first, to open the stream
			select {
			case event := <-events:
				fmt.Fprintf(w, "data: %s\n\n", event)
			case <-r.Context().Done():
				if context.Cause(r.Context()) == session.ErrEnded {
					fmt.Fprint(w, "event: logout\ndata:\n\n")
				}
				return // returning sends what was written
			}
		}
	})))
}

// A websocket ends with its session, and the browser learns why.
func Example_websocketEnds() {
	mux.HandleFunc("GET /prices", func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		context.AfterFunc(r.Context(), func() {
			if context.Cause(r.Context()) == session.ErrEnded {
				_ = conn.Close(websocket.StatusPolicyViolation, "logged out") // 1008
			}
		})
		answerPrices(context.WithoutCancel(r.Context()), conn) // returns when the connection is closed
	})
}

// A message counts as use of the session, and an open connection does not.
func Example_touch() {
	r := new(http.Request)
	s := session.FromContext(r.Context())
	if err := s.Touch(r.Context()); errors.Is(err, session.ErrEnded) || errors.Is(err, store.ErrMoved) {
		return // if it has moved, the browser connects again, with the new cookie
	}
}

// A page that polls does not keep its visitor logged in.
func Example_poll() {
	mux.Handle("GET /unread", sessions.Passive(sessions.ReadOnly(unread)))
}

// A job changes a session by its public ID, which was put into the job.
func Example_job() {
	shipped := func(ctx context.Context, id, order string) error {
		err := sessions.Update(ctx, id, func(s *session.Session) error {
			s.Set("flash", fmt.Sprintf("Order %s is on its way.", order))
			return nil
		})
		switch {
		case errors.Is(err, store.ErrMoved):
			return fmt.Errorf("the visitor has a new session: %w", err) // for example, look it up by List
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrGone):
			return nil // the visitor has gone, or got a new ID more than a minute ago
		}
		return err
	}
	if err := shipped(context.Background(), "GJD0Gx0zZ6Qx5X2mYpNnCw", "4711"); err != nil {
		slog.Error("the visitor does not know", "error", err)
	}
}

// If a framework's recovery is inside the sessions, it answers a panic with a 500. What the handler changed before
// the panic is not saved.
func ExampleOptions_discard() {
	_ = middleware.Options{
		Keys:    [][]byte{key},
		Discard: func(status int) bool { return status >= 500 },
	}
}

func changePassword(r *http.Request, _ string) bool { return r.PostFormValue("new") != "" }

// A page that matters more than others asks for a new login.
func Example_freshLogin() {
	showPasswordForm := func(http.ResponseWriter, *http.Request) {}
	mux.HandleFunc("GET /password", func(w http.ResponseWriter, r *http.Request) {
		if time.Since(session.FromContext(r.Context()).LoginTime()) > 5*time.Minute { // a guest's is zero
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		showPasswordForm(w, r)
	})
}

// Pages of htmx go to the login as a whole.
func Example_membersOnly() {
	toLogin := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("HX-Request") != "" {
			w.Header().Set("HX-Redirect", "/login") // htmx goes there, and shows nothing of this response
			return
		}
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	}
	mux.HandleFunc("GET /account", toLogin)
}

// Pages of htmx and Turbo are shown anew if they have crossed a login.
func ExampleOptions_onError_libraries() {
	_ = middleware.Options{
		Keys: [][]byte{key},
		OnError: func(w http.ResponseWriter, r *http.Request, err error) {
			status := middleware.Status(err)
			switch {
			case status == http.StatusConflict && r.Header.Get("HX-Request") != "":
				w.Header().Set("HX-Refresh", "true") // htmx obeys it, whatever the status
			case status == http.StatusConflict && strings.Contains(r.Header.Get("Accept"), "text/html"): // Turbo
				http.Redirect(w, r, cmp.Or(r.Referer(), "/"), http.StatusSeeOther)
				return
			}
			http.Error(w, http.StatusText(status), status)
		},
	}
}

// A logout by fetch also clears pages that the browser has loaded in advance.
func Example_logoutByFetch() {
	mux.HandleFunc("POST /logout-by-fetch", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Clear-Site-Data", `"prefetchCache", "prerenderCache"`)
		session.FromContext(r.Context()).Destroy()
	})
}

// A page's script learns that its visitor is a guest now.
func Example_loggedOutElsewhere() {
	mux.HandleFunc("POST /draft", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if s.User() == "" {
			http.Error(w, "you are not logged in any more", http.StatusUnauthorized)
			return
		}
		s.Set("draft", r.PostFormValue("text"))
	})
}

// A page of my devices, with a button for each.
func Example_devices() {
	mux.HandleFunc("GET /devices", func(w http.ResponseWriter, r *http.Request) {
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
			fmt.Fprintln(w, d.ID, d.Device, d.Created, seen, d.Expires, d.ID == s.ID()) // true: this session
		}
	})
	mux.HandleFunc("POST /devices/end", func(w http.ResponseWriter, r *http.Request) {
		s, id := session.FromContext(r.Context()), r.PostFormValue("id")
		if id == s.ID() { // this device
			s.Destroy()
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		list, err := sessions.List(r.Context(), s.User())
		isTheirs := slices.ContainsFunc(list, func(d middleware.Info) bool { return d.ID == id })
		if err == nil && isTheirs { // a user may end only their own sessions
			err = sessions.End(r.Context(), id)
		}
		if err != nil && !errors.Is(err, store.ErrGone) && !errors.Is(err, store.ErrNotFound) { // both mean: it had ended
			slog.ErrorContext(r.Context(), "ending a session", "id", id, "error", err)
			http.Error(w, "please try again", middleware.Status(err))
			return
		}
		http.Redirect(w, r, "/devices", http.StatusSeeOther)
	})
}

// After a new password, all other sessions of the user end.
func Example_newPassword() {
	mux.HandleFunc("POST /password", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if !changePassword(r, s.User()) { // first, so that nobody logs in with the old password after EndAll
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
func Example_logoutEverywhere() {
	mux.HandleFunc("POST /logout-everywhere", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if user := s.User(); user != "" {
			if _, err := sessions.EndAll(r.Context(), user); err != nil {
				slog.ErrorContext(r.Context(), "log out everywhere", "error", err)
				http.Error(w, "you may still be logged in, please try again", middleware.Status(err))
				return
			}
		}
		s.Destroy() // so that this client deletes its cookie
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
}

// Device says where a session began, for the list of a user's sessions.
func ExampleOptions_device() {
	_ = middleware.Options{
		Keys:   [][]byte{key},
		Device: func(r *http.Request) string { return r.UserAgent() },
	}
}

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
			return // the response is that error, whatever is written here
		}
		token, err := sessions.Token(r.Context())
		if err != nil {
			http.Error(w, "no token", http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"token": token})
	})
}

// Scripts of another site call the API. A handler that sets headers for every response, also for errors of the
// sessions, goes around the sessions.
func ExampleOptions_token_cors() {
	const app = "https://app.example.com"
	cors := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", app)
			h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After")
			if r.Method == http.MethodOptions {
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
				h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	protection := http.NewCrossOriginProtection()
	if err := protection.AddTrustedOrigin(app); err != nil { // otherwise its requests are answered with 403
		panic(err)
	}
	server.Handler = cors(protection.Handler(sessions.Handler(mux)))
}

// A website with cookies and an app with tokens use the same handlers.
func ExampleOptions_token_web() {
	byCookie, byToken := web.Handler(mux), api.Handler(mux)
	both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.URL.Path == "/api/login" { // an app that logs in has no token yet
			byToken.ServeHTTP(w, r)
		} else {
			byCookie.ServeHTTP(w, r)
		}
	})
	server.Handler = middleware.Recoverer(http.NewCrossOriginProtection().Handler(both))
}

// A server of another kind, such as one of gRPC, finds the token where its clients put it.
func Example_otherServer() {
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

// An audit log has a line for each session that begins, gets another ID, or ends.
func Example_auditLog() {
	_ = middleware.Options{
		Keys: [][]byte{key},
		Hooks: middleware.Hooks{
			Begin: func(ctx context.Context, id string) { // also by a login that gives no session a new ID
				slog.InfoContext(ctx, "session begins", "user", session.FromContext(ctx).User(), "id", id)
			},
			Renew: func(ctx context.Context, old, id string) {
				user := session.FromContext(ctx).User()
				slog.InfoContext(ctx, "new ID", "user", user, "id", id, "before", old)
			},
			End: func(ctx context.Context, id string) { slog.InfoContext(ctx, "logout", "id", id) },
		},
	}
}

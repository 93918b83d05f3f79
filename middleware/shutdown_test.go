package middleware_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// serveUntil is from the guide: it serves until ctx ends, and then lets the running requests finish.
func serveUntil(ctx context.Context, server *http.Server, st *store.Store) error {
	defer st.Close() // last: the running requests save their sessions before
	finished := make(chan error, 1)
	go func() {
		<-ctx.Done()
		patience, cancel := context.WithTimeout(context.Background(), 25*time.Second)
		defer cancel()
		finished <- server.Shutdown(patience)
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return <-finished
}

// A program that is told to end finishes its requests first.
func Example_shutdown() {
	var st *store.Store
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	closing := make(chan struct{})
	server.RegisterOnShutdown(func() { close(closing) })
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		events := eventsOf(r.Context(), session.FromContext(r.Context()).User())
		for http.NewResponseController(w).Flush() == nil {
			select {
			case event := <-events:
				fmt.Fprintf(w, "data: %s\n\n", event)
			case <-closing: // the client connects again, to another process
				return
			case <-r.Context().Done():
				return
			}
		}
	})
	if err := serveUntil(ctx, &server, st); err != nil {
		log.Print(err)
	}
}

// A stream ends at the shutdown, and a request that is under way is saved and answered. The store is closed after that.
func TestAShutdownWaitsForItsRequests(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	st, err := store.Open(r.URL, steady)
	must(t, err)
	closing, working, work := make(chan struct{}), make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	handle(mux, "/add", func(s *session.Session, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, add(s)) })
	handle(mux, "/work", func(s *session.Session, w http.ResponseWriter, _ *http.Request) {
		close(working)
		<-work
		fmt.Fprint(w, add(s))
	})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "open")
		_ = http.NewResponseController(w).Flush()
		<-closing
	})
	addresses := make(chan string, 1)
	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{testKey}, Cookie: http.Cookie{Name: "sid"}})
	must(t, err)
	server := &http.Server{Addr: "127.0.0.1:0", Handler: sessions.Handler(mux),
		BaseContext: func(l net.Listener) context.Context { addresses <- l.Addr().String(); return t.Context() }}
	server.RegisterOnShutdown(func() { close(closing) })

	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serveUntil(ctx, server, st) }()
	url := "http://" + <-addresses
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	get := func(path string) *http.Response {
		res, err := client.Get(url + path)
		if err != nil {
			t.Error(err)
			return &http.Response{Body: http.NoBody}
		}
		return res
	}
	get("/add").Body.Close()
	stream := get("/stream")
	defer stream.Body.Close()
	answered := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(get("/work").Body).ReadString('\n')
		answered <- text
	}()
	<-working

	stop()
	for events := bufio.NewScanner(stream.Body); events.Scan(); { // until it ends, which only the shutdown can do
	}
	close(work)
	if text := <-answered; text != "2" {
		t.Errorf("the request under way got %q", text)
	}
	if err := <-served; err != nil {
		t.Errorf("serveUntil: %v", err)
	}
	for _, key := range r.Keys(t) {
		if strings.Contains(key, ".lock") {
			t.Errorf("%s was left behind", key)
		}
	}
	if err := st.Ping(context.Background()); err == nil {
		t.Error("the store is still open")
	}
}

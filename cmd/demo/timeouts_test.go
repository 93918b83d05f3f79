package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/memnet"
)

// The server does not wait for a client that sends slowly, or nothing.
func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sends string
		after time.Duration
	}{
		"nothing":         {"", headerTimeout},
		"half a header":   {"POST /set HTTP/1.1\r\nHost: demo\r\nCook", headerTimeout},
		"half a body":     {"POST /set HTTP/1.1\r\nHost: demo\r\nContent-Length: 10\r\n\r\nname=", readTimeout},
		"no next request": {"GET / HTTP/1.1\r\nHost: demo\r\n\r\n", idleTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				conn := serveOne(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
				}))
				began := time.Now()
				if _, err := io.WriteString(conn, c.sends); err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, conn)
				if took := time.Since(began); took < c.after || took > c.after+time.Second {
					t.Errorf("the connection ended after %v, want %v", took, c.after)
				}
				time.Sleep(time.Second) // net/http lingers for half a second
			})
		})
	}
}

// The timeouts end neither the work, however long it takes, nor the context of its request.
func TestSlowWorkIsNotCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := serveOne(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name := r.PostFormValue("name")
			select {
			case <-time.After(time.Hour):
			case <-r.Context().Done():
			}
			fmt.Fprint(w, name, r.Context().Err())
		}))
		_, err := io.WriteString(conn, "POST /set HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n"+
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 6\r\n\r\nname=a")
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasSuffix(string(answer), "\r\n\r\na<nil>") {
			t.Errorf("%q, %v", answer, err)
		}
	})
}

// serveOne serves one connection, and returns the client's end of it.
func serveOne(t *testing.T, handler http.Handler) net.Conn {
	t.Helper()
	l := memnet.Listen("")
	srv := newServer(handler, slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	client, err := memnet.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = srv.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return client
}

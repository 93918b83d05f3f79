package main

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

func TestClient(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cookie":
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "secret", Path: "/"})
			_, _ = w.Write([]byte("12"))
		case "/show":
			cookie, err := r.Cookie("session")
			if err != nil || cookie.Value != "secret" || r.Method != http.MethodPost || r.URL.RawQuery != "query" {
				http.Error(w, "wrong request", http.StatusBadRequest)
				return
			}
			_, _ = w.Write([]byte("34"))
		default:
			http.Error(w, "no such thing", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	c, err := dial(t.Context(), server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if n, err := c.call("GET", "/cookie"); n != 12 || err != nil {
		t.Errorf("the answer is %d, error %v", n, err)
	}
	if n, err := c.call("POST", "/show?query"); n != 34 || err != nil {
		t.Errorf("the answer is %d, error %v", n, err)
	}
	const want = "GET /other: 503 Service Unavailable: no such thing"
	if _, err := c.call("GET", "/other"); err == nil || err.Error() != want {
		t.Errorf("the error is %v: it must be %s", err, want)
	}
	if n := c.answers.Load(); n != 2 {
		t.Errorf("%d answers: there were 2", n)
	}
}

// TestStall has a server that never answers.
func TestStall(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c, err := dial(t.Context(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	stop := crowd{c}.watch(50 * time.Millisecond)
	if _, err := c.call("GET", "/"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the error is %v: it must be a timeout", err)
	}
	stop()
}

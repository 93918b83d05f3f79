package memnet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/memnet"
)

// In a bubble, time passes while an HTTP server and its client wait for each other.
func TestHTTPInFakeTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		listener := memnet.Listen("")
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-time.After(time.Hour)
			fmt.Fprint(w, "an hour later")
		})}
		go server.Serve(listener)
		defer server.Close()
		transport := &http.Transport{DialContext: memnet.DialContext}
		defer transport.CloseIdleConnections()
		begun := time.Now()
		res, err := (&http.Client{Transport: transport}).Get("http://" + listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if body, err := io.ReadAll(res.Body); string(body) != "an hour later" || err != nil || time.Since(begun) != time.Hour {
			t.Errorf("after %v the body is %q, %v", time.Since(begun), body, err)
		}
	})
}

// A deadline ends a waiting read and a waiting write. If the deadline is moved in time, it does not.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := memnet.Pipe("a:1", "b:1")
		begun := time.Now()
		client.SetDeadline(begun.Add(time.Second))
		go func() {
			<-time.After(time.Second / 2)
			client.SetDeadline(begun.Add(2 * time.Second))
		}()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		client.SetDeadline(time.Now().Add(time.Second))
		if _, err := client.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		client.Close()
		server.Close()
	})
}

// Bytes that were written before the end still arrive. The writer learns that its peer no longer reads.
func TestClose(t *testing.T) {
	t.Parallel()
	client, server := memnet.Pipe("a:1", "b:1")
	client.Write([]byte("last"))
	client.Close()
	if got, err := io.ReadAll(server); !bytes.Equal(got, []byte("last")) || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := server.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write: %v", err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read: %v", err)
	}
}

// A peer that has read the end of a closed connection cannot reply.
func TestNoAnswerAfterTheEnd(t *testing.T) {
	t.Parallel()
	for range 10_000 {
		client, server := memnet.Pipe("a:1", "b:1")
		go client.Close()
		if _, err := io.ReadAll(server); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Fatalf("write: %v", err)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	listener := memnet.Listen("")
	listener.Close()
	if _, err := memnet.DialContext(context.Background(), "", listener.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
}

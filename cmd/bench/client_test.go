package main

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

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

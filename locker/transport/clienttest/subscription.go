package clienttest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

func (c *check) subscribe(client transport.Client, channel string) transport.Subscription {
	c.Helper()
	s, err := client.Subscribe(c.ctx, channel)
	if err != nil {
		c.Fatalf("Subscribe: %v", err)
	}
	c.Cleanup(func() { s.Close() })
	return s
}

// receive begins to wait for a message.
func receive(s transport.Subscription) <-chan result {
	done := make(chan result, 1)
	go func() {
		message, err := s.Receive()
		done <- result{replies: []any{message}, err: err}
	}()
	return done
}

// After Subscribe has returned, no message of that channel is missed, and no message of another channel
// comes. Messages come in order, unchanged.
func messages(c *check) {
	client := c.open()
	s := c.subscribe(client, "mine")
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprint(i, "\r\n\x00\xff"))
		c.do(client, transport.Command{"PUBLISH", "another", "no"}, transport.Command{"PUBLISH", "mine", want[i]})
	}
	for _, want := range want {
		if r := c.wait(receive(s)); r.err != nil || r.first() != want {
			c.Fatalf("%q, %v, want %q", r.replies, r.err, want)
		}
	}
}

// Close ends a Receive that is under way, and all later ones.
func subscriptionCloses(c *check) {
	s := c.subscribe(c.open(), "mine")
	done := receive(s)
	c.wantPending(done)
	if err := s.Close(); err != nil {
		c.Errorf("Close: %v", err)
	}
	for range 2 {
		if r := c.wait(done); r.err == nil {
			c.Errorf("received %q", r.replies)
		}
		done = receive(s)
	}
}

// When Redis has gone, Receive fails instead of waiting forever.
func subscriptionBreaks(c *check) {
	s := c.subscribe(c.open(), "mine")
	done := receive(s)
	c.server.Stop()
	if r := c.wait(done); r.err == nil {
		c.Errorf("received %q", r.replies)
	}
}

// The context of Subscribe bounds the call, not the subscription.
func subscriptionOutlastsContext(c *check) {
	client := c.open()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	s, err := client.Subscribe(ctx, "mine")
	if err != nil {
		c.Fatal(err)
	}
	defer s.Close()
	done := receive(s)
	cancel()
	c.wantPending(done)
	c.do(client, transport.Command{"PUBLISH", "mine", "still there"})
	if r := c.wait(done); r.err != nil || r.first() != "still there" {
		c.Errorf("%q, %v", r.replies, r.err)
	}
}

// If the server is down or hangs, Subscribe soon fails.
func subscribeWhenDown(c *check) {
	client := c.open()
	for _, tt := range []struct {
		what string
		stop func()
	}{{"paused", c.server.Pause}, {"down", c.server.Stop}} {
		tt.stop()
		ctx, cancel := context.WithTimeout(c.ctx, short)
		begun := time.Now()
		s, err := client.Subscribe(ctx, "mine")
		cancel()
		if err == nil {
			s.Close()
		}
		if took := time.Since(begun); !errors.Is(err, transport.ErrUnavailable) || took > patience/2 {
			c.Errorf("%s: %v, after %v", tt.what, err, took)
		}
	}
}

package transport

import (
	"context"
	"errors"
	"testing"
	"time"
)

// subscribing calls Subscribe, and returns the wire once the command has come.
func (p *puppet) subscribing(ctx context.Context) (*wire, <-chan error) {
	p.t.Helper()
	done := make(chan error, 1)
	go func() {
		s, err := p.client.Subscribe(ctx, "c")
		if err == nil {
			defer s.Close()
			_, err = s.Receive()
		}
		done <- err
	}()
	w := p.accept()
	w.wantCommands("c")
	return w, done
}

// To cancel the context ends a Subscribe that waits for its reply, and its connection.
func TestSubscribeIsCancelled(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		ctx, cancel := context.WithCancel(t.Context())
		w, done := p.subscribing(ctx)
		begun := time.Now()
		cancel()
		if err := <-done; !errors.Is(err, ErrUnavailable) || time.Since(begun) > 0 {
			t.Errorf("%v, after %v", err, time.Since(begun))
		}
		w.wantEnd()
	})
}

// Redigo panics where a message is absurd. That ends the subscription, not the process.
func TestSubscriptionPanics(t *testing.T) {
	const absurd = "$9223372036854775807\r\n"
	each(t, map[string]string{
		"at first": absurd, "later": "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n" + absurd,
	}, func(t *testing.T, text string) {
		p := newPuppet(t)
		w, done := p.subscribing(t.Context())
		w.say(text)
		if err := <-done; !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		w.wantEnd()
	})
}

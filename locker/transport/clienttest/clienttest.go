// Package clienttest checks that a [transport.Client] keeps the promises of all clients. It uses no Redis
// library and starts no Redis: the test of a client provides both.
//
//	func TestMyClient(t *testing.T) {
//		clienttest.Run(t, clienttest.Kind{Open: open, Start: start, OneWrite: true})
//	}
//
// Each promise is a subtest, and a function here whose comment states the promise.
package clienttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A Kind is the client under test.
type Kind struct {
	// Open returns a client of the Redis at an address, and closes it when t ends. Each round trip takes at
	// most timeout.
	Open func(t testing.TB, address string, timeout time.Duration) transport.Client
	// Start starts an empty Redis, which ends with t.
	Start func(t testing.TB) Server
	// OneWrite: the commands of a round trip are sent without waiting for replies in between.
	OneWrite bool
}

// A Server is a Redis that was empty at first.
type Server struct {
	Address string // host:port
	Stop    func() // as in a crash: its data is lost, and connections are refused
	Restart func() // at the same address
	Pause   func() // the server keeps all connections, and does nothing
	Resume  func()
}

// Run checks each promise of kind in a parallel subtest. If the client is a [transport.RoutedClient], its DoRouted must
// keep the promises, too.
func Run(t *testing.T, kind Kind) {
	t.Helper()
	for name, kind := range map[string]Kind{"Do": kind, "DoRouted": routed(kind)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, p := range promises {
				t.Run(p.name, func(t *testing.T) {
					t.Parallel()
					p.check(newCheck(t, kind))
				})
			}
		})
	}
}

// routed is a kind of the same clients. They are used by DoRouted.
func routed(kind Kind) Kind {
	open := kind.Open
	kind.Open = func(t testing.TB, address string, timeout time.Duration) transport.Client {
		client, ok := open(t, address, timeout).(transport.RoutedClient)
		if !ok {
			t.Skip("the client knows no routes")
		}
		return byRoute{client}
	}
	return kind
}

// byRoute is a client whose Do is the DoRouted of another one.
type byRoute struct{ transport.RoutedClient }

func (c byRoute) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	replies, _, err := c.DoRouted(ctx, key, commands...)
	return replies, err
}

var promises = []struct {
	name  string
	check func(*check)
}{
	{"Replies", replies},
	{"ErrorsAreReplies", errorsAreReplies},
	{"Order", order},
	{"OneWrite", oneWrite},
	{"Arguments", arguments},
	{"Large", large},
	{"ArgumentsAreTheCallers", argumentsAreTheCallers},
	{"ManyCallers", manyCallers},
	{"Route", route},

	{"RefusedWhenDown", refusedWhenDown},
	{"RefusedWhenOver", refusedWhenOver},
	{"LostCommand", lostCommand},
	{"LostReply", lostReply},
	{"CutReply", cutReply},
	{"Timeout", timesOut},
	{"Deadline", keepsDeadline},
	{"DeadlineHarmsNobody", deadlineHarmsNobody},
	{"CancelDoesNotBreakOff", cancelDoesNotBreakOff},
	{"Restart", survivesRestart},
	{"Reset", survivesReset},

	{"Messages", messages},
	{"SubscriptionCloses", subscriptionCloses},
	{"SubscriptionBreaks", subscriptionBreaks},
	{"SubscriptionOutlastsContext", subscriptionOutlastsContext},
	{"SubscribeWhenDown", subscribeWhenDown},
}

const (
	patience = 20 * time.Second       // to wait for events that should happen soon, on a busy machine
	short    = 500 * time.Millisecond // to wait for events that should not happen
)

// A check is one promise being checked.
type check struct {
	testing.TB
	kind   Kind
	ctx    context.Context
	server Server
	wire   *wire // to the server
}

func newCheck(t testing.TB, kind Kind) *check {
	server := kind.Start(t)
	return &check{t, kind, t.Context(), server, newWire(t, server.Address)}
}

// open returns a patient client with a connection through the wire.
func (c *check) open() transport.Client {
	c.Helper()
	return c.openWith(patience)
}

// openWith returns a client that has connected, even if the timeout is too short for that on a busy machine.
func (c *check) openWith(timeout time.Duration) transport.Client {
	c.Helper()
	client := c.kind.Open(c.TB, c.wire.address, timeout)
	c.answers(client)
	return client
}

// answers waits until a round trip succeeds.
func (c *check) answers(client transport.Client) {
	c.Helper()
	c.eventually("a round trip", func() bool {
		_, err := client.Do(c.ctx, "k", transport.Command{"PING"})
		if err != nil && !errors.Is(err, transport.ErrUnavailable) {
			c.Error(err)
		}
		return err == nil
	})
}

// do makes a round trip that must succeed.
func (c *check) do(client transport.Client, commands ...transport.Command) []any {
	c.Helper()
	replies, err := client.Do(c.ctx, "k", commands...)
	if err != nil {
		c.Fatalf("%.50q: %v", commands, err)
	}
	if len(replies) != len(commands) {
		c.Fatalf("%.50q: %d replies", commands, len(replies))
	}
	return replies
}

// begin makes a round trip in a goroutine. It sends the result to the channel, and closes the channel.
func (c *check) begin(ctx context.Context, client transport.Client, commands ...transport.Command) <-chan result {
	done := make(chan result, 1)
	go func() {
		defer close(done)
		begun := time.Now()
		replies, err := client.Do(ctx, "k", commands...)
		done <- result{replies, err, time.Since(begun)}
	}()
	return done
}

type result struct {
	replies []any
	err     error
	took    time.Duration
}

// first returns the first reply.
func (r result) first() string {
	if len(r.replies) == 0 {
		return "nothing"
	}
	return text(r.replies[0])
}

// wait waits for a round trip.
func (c *check) wait(done <-chan result) result {
	c.Helper()
	select {
	case r := <-done:
		return r
	case <-time.After(patience):
		c.Fatal("a round trip does not end")
		panic("unreachable")
	}
}

// wantPending checks that a round trip goes on.
func (c *check) wantPending(done <-chan result) {
	c.Helper()
	select {
	case r := <-done:
		c.Errorf("the round trip has ended: %q, %v", r.replies, r.err)
	case <-time.After(50 * time.Millisecond):
	}
}

// wantRefused checks that err says that nothing was done.
func (c *check) wantRefused(err error) {
	c.Helper()
	if !errors.Is(err, transport.ErrRefused) || !errors.Is(err, transport.ErrUnavailable) {
		c.Errorf("%v, want ErrRefused and ErrUnavailable", err)
	}
}

// wantAmbiguous checks that err says that the commands may have been executed.
func (c *check) wantAmbiguous(err error) {
	c.Helper()
	if !errors.Is(err, transport.ErrUnavailable) || errors.Is(err, transport.ErrRefused) {
		c.Errorf("%v, want ErrUnavailable alone", err)
	}
}

// eventually waits until ok.
func (c *check) eventually(what string, ok func() bool) {
	c.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) { // between two tries
		if time.Now().After(end) {
			c.Fatalf("never happened: %s", what)
		}
	}
}

// text returns a reply that is text, of either type.
func text(reply any) string {
	switch reply := reply.(type) {
	case string:
		return reply
	case []byte:
		return string(reply)
	}
	return fmt.Sprintf("%T(%v)", reply, reply)
}

// show writes a reply, of the types that it may have. It quotes text.
func show(reply any) string {
	switch reply := reply.(type) {
	case nil, int64:
		return fmt.Sprint(reply)
	case []any:
		var parts []string
		for _, part := range reply {
			parts = append(parts, show(part))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case error:
		return "error: " + reply.Error()
	}
	return fmt.Sprintf("%q", text(reply))
}

// isTimeout reports whether err is a timeout.
func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

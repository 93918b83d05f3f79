package clienttest

import (
	"context"
	"errors"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// Nothing can be sent to a server that is down, so nothing was done. When the server is back, the client works.
func refusedWhenDown(c *check) {
	c.server.Stop()
	client := c.kind.Open(c.TB, c.server.Address, patience)
	for range 3 {
		_, err := client.Do(c.ctx, "k", push)
		c.wantRefused(err)
	}
	c.server.Restart()
	c.answers(client)
}

// Nothing is sent for a context that has ended.
func refusedWhenOver(c *check) {
	client := c.open()
	cancelled, cancel := context.WithCancel(c.ctx)
	cancel()
	over, stop := context.WithTimeout(c.ctx, 0)
	defer stop()
	for _, ctx := range []context.Context{cancelled, over} {
		_, err := client.Do(ctx, "k", push)
		c.wantRefused(err)
		if !errors.Is(err, ctx.Err()) {
			c.Errorf("%v does not wrap %v", err, ctx.Err())
		}
	}
	c.executed(client, 0)
}

// push is a command whose executions Redis counts.
var push = transport.Command{"LPUSH", "k", "x"}

// executed checks how often push was executed.
func (c *check) executed(client transport.Client, times int64) {
	c.Helper()
	if got := c.do(client, push)[0]; got != times+1 {
		c.Errorf("after one more it was executed %v times, want %d", got, times+1)
	}
}

// breaks makes a round trip whose connection breaks. The client cannot know whether the commands were
// executed, and does not repeat them. The next round trip has another connection.
func breaks(c *check, f fault, executed int64) {
	client := c.open()
	c.wire.breakNext(f)
	_, err := client.Do(c.ctx, "k", push)
	c.wantAmbiguous(err)
	if isTimeout(err) {
		c.Errorf("%v: the call did not wait", err)
	}
	c.executed(client, executed)
}

// The connection breaks before the command reaches Redis.
func lostCommand(c *check) { breaks(c, loseCommand, 0) }

// The connection breaks after Redis has executed the command.
func lostReply(c *check) { breaks(c, loseReply, 1) }

// The connection breaks in the middle of the reply.
func cutReply(c *check) { breaks(c, cutTheReply, 1) }

// A server that hangs, or a network that loses everything, costs at most the timeout. The error is a timeout:
// callers repeat a broken round trip, but not one that has used up its time.
//
// A client may first test an idle connection, for up to a quarter of its timeout, for example. So the timeout
// is so long that no machine stalls for a quarter of it.
func timesOut(c *check) {
	const timeout = 4 * short
	for what, hang := range map[string]struct{ begin, end func() }{
		"a server that hangs": {c.server.Pause, c.server.Resume},
		"a network hole":      {func() { c.wire.breakNext(hole) }, func() { c.wire.breakNext(none) }},
	} {
		client := c.openWith(timeout)
		hang.begin()
		r := c.wait(c.begin(c.ctx, client, transport.Command{"GET", "k"}))
		c.wantAmbiguous(r.err)
		if !isTimeout(r.err) {
			c.Errorf("%s: %v is no timeout", what, r.err)
		}
		if r.took < timeout/2 || r.took > patience/2 {
			c.Errorf("%s: the round trip took %v, with a timeout of %v", what, r.took, timeout)
		}
		hang.end()
		c.answers(client)
	}
}

// A caller with less time than the timeout waits no longer than its own deadline.
func keepsDeadline(c *check) {
	client := c.open()
	c.server.Pause()
	ctx, cancel := context.WithTimeout(c.ctx, short)
	defer cancel()
	r := c.wait(c.begin(ctx, client, push))
	c.wantAmbiguous(r.err)
	if !isTimeout(r.err) || r.took > patience/2 {
		c.Errorf("%v, after %v", r.err, r.took)
	}
	c.server.Resume()
}

// A caller that gives up does not harm the others, which get their replies as soon as Redis sends them.
func deadlineHarmsNobody(c *check) {
	client := c.open()
	c.server.Pause()
	var hurried, patient []<-chan result
	soon, cancel := context.WithTimeout(c.ctx, 100*time.Millisecond)
	defer cancel()
	for range 5 {
		hurried = append(hurried, c.begin(soon, client, transport.Command{"PING", "hurried"}))
		patient = append(patient, c.begin(c.ctx, client, transport.Command{"PING", "patient"}))
	}
	for _, done := range hurried {
		c.wait(done)
	}
	c.server.Resume()
	for _, done := range patient {
		if r := c.wait(done); r.err != nil || r.first() != "patient" {
			c.Errorf("%q, %v", r.replies, r.err)
		}
	}
}

// Cancelling does not abort a round trip that was sent: its outcome would never be known.
func cancelDoesNotBreakOff(c *check) {
	client := c.open()
	c.server.Pause()
	c.wire.listen()
	ctx, cancel := context.WithCancelCause(c.ctx)
	done := c.begin(ctx, client, transport.Command{"PING", "on its way"})
	c.eventually("it is sent", func() bool { return c.wire.has("on its way") })
	cancel(errors.New("the caller has gone"))
	c.wantPending(done)
	c.server.Resume()
	if r := c.wait(done); r.err != nil || r.first() != "on its way" {
		c.Errorf("%q, %v", r.replies, r.err)
	}
}

// After a restart all connections are dead. That costs a few round trips, whose errors are ambiguous. Then
// the client works.
func survivesRestart(c *check) {
	client := c.open()
	c.server.Restart()
	c.wantRecovery(client)
}

// A client that was reset goes on working. It may not have noticed the reset when the next round trip comes.
func survivesReset(c *check) {
	client := c.open()
	if r, ok := client.(transport.Resetter); ok {
		r.Reset()
	}
	c.wantRecovery(client)
}

// wantRecovery waits until a round trip succeeds. From then on all round trips must.
func (c *check) wantRecovery(client transport.Client) {
	c.Helper()
	c.answers(client)
	for range 10 {
		c.do(client, transport.Command{"PING"})
	}
}

package otellatchkey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/middleware"
)

func TestExchange(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, &middleware.ExchangeEvent{
		Script: "commit", Command: "EVALSHA", Commands: 1, Node: "node-1:7000", Database: "0", Holds: 5, Moved: 1, Asked: 2, Took: 500 * time.Millisecond,
	})
	same(t, measured(t, reader),
		"db.client.operation.duration db.namespace=0 db.operation.name=EVALSHA db.stored_procedure.name=commit db.system.name=redis "+
			"server.address=node-1 server.port=7000 count=1 sum=0.5",
		"latchkey.commits sum=1",
		"latchkey.commit.requests sum=5",
		"latchkey.cluster.redirects latchkey.how=moved sum=1",
		"latchkey.cluster.redirects latchkey.how=asked sum=2")
}

// A commit that is sent again is one commit.
func TestCommitThatIsSentAgain(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o,
		&middleware.ExchangeEvent{Script: "commit", Command: "EVALSHA", Commands: 1, Holds: 3, Err: io.EOF},
		&middleware.ExchangeEvent{Script: "commit", Command: "EVALSHA", Commands: 1, Holds: 3, Status: "NOSCRIPT"},
		&middleware.ExchangeEvent{Script: "commit", Command: "EVAL", Commands: 1, Holds: 3})
	const exchange = "db.client.operation.duration db.operation.name="
	same(t, measured(t, reader), "latchkey.commits sum=1", "latchkey.commit.requests sum=3",
		exchange+"EVALSHA db.stored_procedure.name=commit db.system.name=redis error.type=connection_closed count=1 sum=0",
		exchange+"EVALSHA db.stored_procedure.name=commit db.system.name=redis count=1 sum=0",
		exchange+"EVAL db.stored_procedure.name=commit db.system.name=redis count=1 sum=0")
}

// Commands that are sent together are one operation. Their names may differ, so the convention wants none of them.
func TestExchangeOfSeveralCommands(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, &middleware.ExchangeEvent{Script: "commit", Command: "SET", Commands: 3, Node: "[::1]:6379", Took: time.Second},
		&middleware.ExchangeEvent{Command: "GET", Commands: 1, Node: "/run/redis.sock", Took: time.Second})
	same(t, measured(t, reader),
		"db.client.operation.duration db.operation.name=PIPELINE db.stored_procedure.name=commit db.system.name=redis server.address=::1 count=1 sum=1",
		"db.client.operation.duration db.operation.name=GET db.system.name=redis server.address=/run/redis.sock count=1 sum=1")
}

// The first word of Redis's error is the status, and the error.type. Without a reply there is no status.
func TestExchangeThatFails(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, &middleware.ExchangeEvent{Command: "EVALSHA", Commands: 1, Status: "OOM", Took: time.Second},
		&middleware.ExchangeEvent{Command: "EVALSHA", Commands: 1, Err: context.DeadlineExceeded, Took: time.Second})
	same(t, measured(t, reader),
		"db.client.operation.duration db.operation.name=EVALSHA db.response.status_code=OOM db.system.name=redis error.type=OOM count=1 sum=1",
		"db.client.operation.duration db.operation.name=EVALSHA db.system.name=redis error.type=timeout count=1 sum=1")
}

// After a restart Redis knows no script, so the text of each is sent at its first use. That is no failure.
// The first try of a commit ends no hold.
func TestScriptThatIsNotLoaded(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	ctx, ended := sampled(t)
	start := time.Now()
	for _, e := range []*middleware.ExchangeEvent{
		{Script: "commit", Command: "EVALSHA", Commands: 1, Status: "NOSCRIPT", Holds: 1, Began: start, Took: time.Second},
		{Script: "commit", Command: "EVAL", Commands: 1, Holds: 1, Began: start, Took: time.Second},
	} {
		o.Observe(ctx, e)
	}
	same(t, measured(t, reader),
		"db.client.operation.duration db.operation.name=EVALSHA db.stored_procedure.name=commit db.system.name=redis count=1 sum=1",
		"db.client.operation.duration db.operation.name=EVAL db.stored_procedure.name=commit db.system.name=redis count=1 sum=1",
		"latchkey.commits sum=1", "latchkey.commit.requests sum=1")
	same(t, lines(ended()[:2], start),
		`client "EVALSHA commit" 0–1000 db.system.name=redis db.operation.name=EVALSHA db.stored_procedure.name=commit latchkey.redis.sent=0 latchkey.redis.received=0`,
		`client "EVAL commit" 0–1000 db.system.name=redis db.operation.name=EVAL db.stored_procedure.name=commit latchkey.redis.sent=0 latchkey.redis.received=0 latchkey.commit.requests=1`)
}

// An exchange that took as long as the default of store.Options.Timeout had no reply. It falls into a bucket of its
// own.
func TestExchangesWithoutAReplyAreSeen(t *testing.T) {
	t.Parallel()
	const timeout, most = 2.0, 2.5
	i, _ := slices.BinarySearch(exchangeTimes, timeout)
	if exchangeTimes[i] > most {
		t.Errorf("an exchange that took %v s is between %v s and %v s", timeout, exchangeTimes[i-1], exchangeTimes[i])
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{context.Canceled, "canceled"},
		{fmt.Errorf("wrapped: %w", context.DeadlineExceeded), "timeout"},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "timeout"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "connection_refused"},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, "connection_closed"},
		{io.EOF, "connection_closed"},
		{fmt.Errorf("wrapped: %w", &transport.BrokenError{Cause: io.EOF}), "connection_closed"},
		{&transport.BrokenError{Cause: os.ErrDeadlineExceeded}, "timeout"}, // of another exchange
		{errors.New("user ada: too many keys"), "_OTHER"},
	} {
		if got := failure(c.err); got != c.want {
			t.Errorf("the failure of %v is %q, want %q", c.err, got, c.want)
		}
	}
}

// The spans are left to the client of Redis. The metric stays: alerts and the dashboard need it.
func TestLeaveRedis(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{LeaveRedis: true})
	tell(o, &middleware.ExchangeEvent{Script: "take", Command: "EVALSHA", Commands: 1, Took: time.Second})
	same(t, measured(t, reader),
		"db.client.operation.duration db.operation.name=EVALSHA db.stored_procedure.name=take db.system.name=redis count=1 sum=1")
}

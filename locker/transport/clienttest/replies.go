package clienttest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// wantShown checks replies.
func (c *check) wantShown(replies []any, want ...string) {
	c.Helper()
	for i, reply := range replies {
		if got := show(reply); got != want[i] && (!strings.HasSuffix(want[i], "...") || !strings.HasPrefix(got, strings.TrimSuffix(want[i], "..."))) {
			c.Errorf("reply %d is %s, want %s", i, got, want[i])
		}
	}
}

// A reply is nil, an int64, a string or a []byte, or a []any of these.
func replies(c *check) {
	c.wantShown(c.do(c.open(),
		transport.Command{"GET", "{k}none"},
		transport.Command{"SET", "k", "value"},
		transport.Command{"GET", "k"},
		transport.Command{"STRLEN", "k"},
		transport.Command{"EVAL", "return {1, 'two', {3, {}}, false}", 0},
		transport.Command{"MGET", "k", "{k}none"},
	), "<nil>", `"OK"`, `"value"`, "5", `[1 "two" [3 []] <nil>]`, `["value" <nil>]`)
}

// If the client is a transport.RoutedClient, the node is the one that was asked. The database is the first one.
func route(c *check) {
	client, ok := c.open().(transport.RoutedClient)
	if !ok {
		c.Skip("the client knows no routes")
	}
	replies, route, err := client.DoRouted(c.Context(), "k", transport.Command{"SET", "k", "value"})
	if err != nil {
		c.Fatal(err)
	}
	c.wantShown(replies, `"OK"`)
	if route.Node != "" && route.Node != c.wire.address && route.Node != c.server.Address || route.Moved > 0 || route.Asked > 0 ||
		route.Database != "" && route.Database != "0" {
		c.Errorf("the route is %+v, and the server's address %s", route, c.wire.address)
	}
}

// If Redis refuses a command, the reply to that command is an error with Redis's text. The other commands are
// not affected.
func errorsAreReplies(c *check) {
	client := c.open()
	c.wantShown(c.do(client,
		transport.Command{"SET", "k", "value"},
		push,
		transport.Command{"EVALSHA", strings.Repeat("0", 40), 0},
		transport.Command{"EVAL", "return redis.error_reply('MINE own words')", 0},
		transport.Command{"GET", "k"},
	), `"OK"`, "error: WRONGTYPE ...", "error: NOSCRIPT ...", "error: MINE own words", `"value"`)
	c.wantShown(c.do(client, push), "error: WRONGTYPE ...")
}

// The commands of a round trip are executed in their order, and so are round trips one after another.
func order(c *check) {
	client := c.open()
	last := "<nil>"
	for n := range 20 {
		var commands []transport.Command
		var want []string
		for i := range 10 {
			value := fmt.Sprint(n, "/", i)
			commands, want = append(commands, transport.Command{"GETSET", "k", value}), append(want, last)
			last = strconv.Quote(value)
		}
		c.wantShown(c.do(client, commands...), want...)
	}
}

// The commands of a round trip are sent without waiting for replies.
func oneWrite(c *check) {
	if !c.kind.OneWrite {
		c.Log("not promised by this client")
		return
	}
	client := c.open()
	c.wire.breakNext(hole) // no reply will come
	c.begin(c.ctx, client, transport.Command{"PING", "first"}, transport.Command{"PING", "second"}, transport.Command{"PING", "third"})
	c.eventually("all is sent", func() bool { return c.wire.has("first", "second", "third") })
}

// Arguments and replies arrive unchanged, byte by byte.
func arguments(c *check) {
	client := c.open()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, want := range []string{"", " ", "\r\n", "$3\r\nabc\r\n", "käse", "\xff\xfe", "%s", string(all)} {
		got := c.do(client, transport.Command{"PING", want}, transport.Command{"PING", []byte(want)})
		if text(got[0]) != want || text(got[1]) != want {
			c.Errorf("sent %q, got %q and %q", want, text(got[0]), text(got[1]))
		}
	}
	for _, n := range []int64{0, -1, math.MaxInt64, math.MinInt64} {
		got := c.do(client, transport.Command{"PING", n}, transport.Command{"PING", int(n)})
		if want := fmt.Sprint(n); text(got[0]) != want || text(got[1]) != want {
			c.Errorf("sent %s, got %q and %q", want, text(got[0]), text(got[1]))
		}
	}
}

// Values of several megabytes arrive, also many at once.
func large(c *check) {
	client := c.open()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			want := strings.Repeat(fmt.Sprint(i), 2<<20)
			got, err := client.Do(c.ctx, "k", transport.Command{"PING", []byte(want)})
			if err != nil {
				c.Error(err)
			} else if text(got[0]) != want {
				c.Errorf("%d bytes came back as %d", len(want), len(text(got[0])))
			}
		})
	}
	all.Wait()
}

// The commands belong to the caller again when Do has returned, even if Do has returned early.
func argumentsAreTheCallers(c *check) {
	client := c.open()
	c.server.Pause()
	value := bytes.Repeat([]byte("x"), 16<<20) // more than the network buffers
	ctx, cancel := context.WithTimeout(c.ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := client.Do(ctx, "k", transport.Command{"SET", "k", value}); err == nil {
		c.Error("a paused server has replied")
	}
	clear(value)
	c.server.Resume()
	if got := text(c.do(client, transport.Command{"GETRANGE", "k", 0, -1})[0]); strings.Contains(got, "\x00") {
		c.Error("Redis has got the caller's later changes")
	}
}

// Any number of goroutines may use a client, and each gets its own replies.
func manyCallers(c *check) {
	client := c.open()
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for n := range 30 {
				want := fmt.Sprint(i, " ", n, " ", rand.Int64())
				got, err := client.Do(c.ctx, "k", transport.Command{"PING", want}, transport.Command{"PING", "again " + want})
				if err != nil {
					c.Error(err)
				} else if len(got) != 2 || text(got[0]) != want || text(got[1]) != "again "+want {
					c.Errorf("sent %q, got %q", want, got)
				}
			}
		})
	}
	all.Wait()
}

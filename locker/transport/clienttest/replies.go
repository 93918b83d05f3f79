package clienttest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A reply is nil, an int64, a string or a []byte, or a []any of these.
func replies(c *check) {
	client := c.open()
	all := c.do(client,
		transport.Command{"GET", "{k}none"},
		transport.Command{"SET", "k", "value"},
		transport.Command{"GET", "k"},
		transport.Command{"STRLEN", "k"},
		transport.Command{"EVAL", "return {1, 'two', {3, {}}, false}", 0},
		transport.Command{"MGET", "k", "{k}none"})
	if all[0] != nil {
		c.Errorf("what is not there: %T(%v)", all[0], all[0])
	}
	if got := text(all[1]); got != "OK" {
		c.Errorf("a status: %q", got)
	}
	if got := text(all[2]); got != "value" {
		c.Errorf("a string: %q", got)
	}
	if all[3] != int64(5) {
		c.Errorf("a number: %T(%v)", all[3], all[3])
	}
	if got := show(all[4]); got != "[1 two [3 []] nil]" {
		c.Errorf("an array: %s", got)
	}
	if got := show(all[5]); got != "[value nil]" {
		c.Errorf("an array with a gap: %s", got)
	}
}

// show writes a reply, of the types that it may have.
func show(reply any) string {
	switch reply := reply.(type) {
	case nil:
		return "nil"
	case int64:
		return fmt.Sprint(reply)
	case []any:
		var parts []string
		for _, part := range reply {
			parts = append(parts, show(part))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return text(reply)
}

// What Redis refuses is the reply to that command, in Redis's own words. It does not concern the
// other commands.
func errorsAreReplies(c *check) {
	client := c.open()
	all := c.do(client,
		transport.Command{"SET", "k", "value"},
		transport.Command{"LPUSH", "k", "x"},
		transport.Command{"EVALSHA", strings.Repeat("0", 40), 0},
		transport.Command{"EVAL", "return redis.error_reply('MINE own words')", 0},
		transport.Command{"GET", "k"})
	for i, want := range []string{"", "WRONGTYPE ", "NOSCRIPT ", "MINE own words", ""} {
		err, refused := all[i].(error)
		if refused != (want != "") || refused && !strings.HasPrefix(err.Error(), want) {
			c.Errorf("reply %d is %T(%v), want %q", i, all[i], all[i], want)
		}
	}
	alone := c.do(client, transport.Command{"LPUSH", "k", "x"})[0]
	if _, refused := alone.(error); !refused {
		c.Errorf("alone: %T(%v)", alone, alone)
	}
}

// The commands of an exchange are executed in their order, and so are exchanges one after another.
func order(c *check) {
	client := c.open()
	var want []string
	for range 20 {
		var commands []transport.Command
		for range 10 {
			want = append(want, fmt.Sprint(len(want)))
			commands = append(commands, transport.Command{"RPUSH", "k", want[len(want)-1]})
		}
		for i, reply := range c.do(client, commands...) {
			if n := int64(len(want) - 9 + i); reply != n {
				c.Errorf("the reply to command %d is %v", n, reply)
			}
		}
	}
	got := c.do(client, transport.Command{"LRANGE", "k", 0, -1})[0]
	if show(got) != "["+strings.Join(want, " ")+"]" {
		c.Errorf("executed as %s", show(got))
	}
}

// The commands of an exchange are sent without waiting for replies.
func oneWrite(c *check) {
	if !c.kind.OneWrite {
		c.Log("not promised by this client")
		return
	}
	client := c.openWith(time.Second)
	c.wire.breakNext(hole) // no reply will come
	done := c.begin(c.ctx, client, transport.Command{"ECHO", "first"}, transport.Command{"ECHO", "second"}, transport.Command{"ECHO", "third"})
	c.wait(done)
	if !c.wire.has("first", "second", "third") {
		c.Error("not all was sent before the first reply")
	}
}

// Arguments arrive byte by byte as they are, as do replies.
func arguments(c *check) {
	client := c.open()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, want := range []string{"", " ", "\r\n", "$3\r\nabc\r\n", "käse", "\xff\xfe", "%s", string(all)} {
		got := c.do(client, transport.Command{"ECHO", want}, transport.Command{"ECHO", []byte(want)})
		if text(got[0]) != want || text(got[1]) != want {
			c.Errorf("sent %q, got %q and %q", want, text(got[0]), text(got[1]))
		}
	}
	for _, n := range []int64{0, -1, math.MaxInt64, math.MinInt64} {
		got := c.do(client, transport.Command{"ECHO", n}, transport.Command{"ECHO", int(n)})
		if want := fmt.Sprint(n); text(got[0]) != want || text(got[1]) != want {
			c.Errorf("sent %s, got %q and %q", want, text(got[0]), text(got[1]))
		}
	}
}

// Values of several megabytes pass, also many at once.
func large(c *check) {
	client := c.open()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			want := strings.Repeat(fmt.Sprint(i), 2<<20)
			got, err := client.Do(c.ctx, "k", transport.Command{"ECHO", []byte(want)})
			if err != nil {
				c.Error(err)
			} else if text(got[0]) != want {
				c.Errorf("%d bytes came back as %d", len(want), len(text(got[0])))
			}
		})
	}
	all.Wait()
}

// The commands are the caller's again when Do has returned, even if it has left in the middle.
func argumentsAreTheCallers(c *check) {
	client := c.open()
	c.server.Pause()
	value := bytes.Repeat([]byte("x"), 16<<20) // more than the network takes in
	ctx, cancel := context.WithTimeout(c.ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := client.Do(ctx, "k", transport.Command{"SET", "k", value}); err == nil {
		c.Error("a paused server has answered")
	}
	clear(value)
	c.server.Resume()
	if got := text(c.do(client, transport.Command{"GETRANGE", "k", 0, -1})[0]); strings.Contains(got, "\x00") {
		c.Error("Redis has got what the caller did later")
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
				got, err := client.Do(c.ctx, "k", transport.Command{"ECHO", want}, transport.Command{"ECHO", "again " + want})
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

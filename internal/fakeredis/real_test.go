package fakeredis_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A pair is a real Redis and a simulated one. Both get the same commands, and the test fails at the first
// difference.
type pair struct {
	testing.TB
	real  *redistest.Server
	sim   *fakeredis.Server
	admin redis.Conn // of a user who always has all permissions

	seed    uint64        // of all random choices
	slack   time.Duration // the largest difference of the clocks
	history []string
}

func newPair(tb testing.TB, args ...string) *pair {
	tb.Helper()
	p := &pair{TB: tb, real: redistest.Real(tb, args...), sim: fakeredis.New(), slack: 2 * time.Millisecond}
	p.real.Do(tb, "ACL", "SETUSER", "admin", "on", "nopass", "~*", "&*", "+@all")
	p.admin = p.dial()
	p.control("AUTH", "admin", "any")
	return p
}

func (p *pair) dial() redis.Conn {
	p.Helper()
	c, err := redis.Dial("tcp", p.real.Addr, redis.DialReadTimeout(time.Minute))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { c.Close() })
	return c
}

// control changes the configuration of the real Redis alone.
func (p *pair) control(name string, args ...any) {
	p.Helper()
	if _, err := p.admin.Do(name, args...); err != nil {
		p.Fatalf("%s %v: %v", name, args, err)
	}
	p.note("%s %v", name, args)
}

func (p *pair) note(format string, args ...any) {
	p.history = append(p.history, fmt.Sprintf(format, args...))
	p.history = p.history[max(0, len(p.history)-12):]
}

// A link is a client's connection to both servers.
type link struct {
	*pair
	real       redis.Conn
	sim        *fakeredis.Client
	realPushed []fakeredis.Reply
	simPushed  []fakeredis.Reply
}

func (p *pair) connect() *link {
	p.Helper()
	l := &link{pair: p, real: p.dial()}
	l.sim = p.sim.Connect(func(r fakeredis.Reply) { l.simPushed = append(l.simPushed, r) })
	return l
}

// do sends a command to both, and returns the reply.
func (l *link) do(args ...string) fakeredis.Reply {
	l.Helper()
	reply, same := l.try(args...)
	if !same {
		l.fail("the replies differ")
	}
	return reply
}

// try sends a command to both, and reports whether the replies are the same.
func (l *link) try(args ...string) (fakeredis.Reply, bool) {
	l.Helper()
	now := time.Now()
	want := l.ask(args)
	l.slack = max(l.slack, time.Since(now)+2*time.Millisecond)
	got := l.sim.Do(now, args...)
	l.note("%.60q\n\treal %v\n\tsim  %v", args, want, got)
	return got, l.same(want, got, slices.ContainsFunc(args, func(arg string) bool { return strings.EqualFold(arg, "ttl") }))
}

func (p *pair) fail(what string) {
	p.Helper()
	p.Fatalf("seed %d: %s:\n%s", p.seed, what, strings.Join(p.history, "\n"))
}

// send sends a command to the real Redis.
func (p *pair) send(c redis.Conn, args []string) {
	p.Helper()
	list := make([]any, len(args)-1)
	for i, arg := range args[1:] {
		list[i] = arg
	}
	if err := errors.Join(c.Send(args[0], list...), c.Flush()); err != nil {
		p.Fatal(err)
	}
}

// ask sends a command to the real Redis and waits for its reply. A command on several channels has
// several replies.
func (l *link) ask(args []string) fakeredis.Reply {
	l.Helper()
	l.send(l.real, args)
	replies := 1
	if strings.HasSuffix(strings.ToLower(args[0]), "subscribe") {
		replies = max(1, len(args)-1)
	}
	for {
		reply := l.receive()
		replies--
		if reply.IsError() || replies == 0 && !isMessage(reply) {
			return reply
		}
		if isMessage(reply) {
			replies++
		}
		l.realPushed = append(l.realPushed, reply)
	}
}

func isMessage(r fakeredis.Reply) bool {
	return len(r.List()) > 2 && (r.List()[0].Text() == "message" || r.List()[0].Text() == "pmessage")
}

func (l *link) receive() fakeredis.Reply {
	l.Helper()
	value, err := l.real.Receive()
	if refused, ok := err.(redis.Error); ok {
		return fakeredis.Err(string(refused))
	}
	if err != nil {
		l.fail(err.Error())
	}
	return fromRedigo(value)
}

// quiet compares what both servers have pushed so far.
func (l *link) quiet() {
	l.Helper()
	l.do("PING", "are these all?")
	if fmt.Sprint(l.realPushed) != fmt.Sprint(l.simPushed) {
		l.note("real %v\nsim  %v", l.realPushed, l.simPushed)
		l.fail("the pushed messages differ")
	}
	l.realPushed, l.simPushed = nil, nil
}

func fromRedigo(value any) fakeredis.Reply {
	switch value := value.(type) {
	case string:
		return fakeredis.Simple(value)
	case []byte:
		return fakeredis.Bulk(string(value))
	case int64:
		return fakeredis.Int(value)
	case redis.Error:
		return fakeredis.Err(string(value))
	case []any:
		list := make([]fakeredis.Reply, len(value))
		for i := range value {
			list[i] = fromRedigo(value[i])
		}
		return fakeredis.Array(list...)
	default:
		return fakeredis.Nil
	}
}

// The two servers have different clocks, which are read one after the other. So no key of a comparison may come
// near its end: times to live are long. And no two times to live of one round are within minutes of each other,
// since their order must not depend on when they were set.
const (
	shortest = 1_000_000
	apart    = 100_000
	times    = 4096 // how many different times to live there are
	longest  = shortest + times*apart
)

// maybeTime reports whether a number may be a time to live in ms. The lock of timestamps doubles them,
// and some are nearly infinite. No reply has other numbers in these ranges.
func maybeTime(n int64) bool { return n > shortest/10 && n <= 2*longest || n > 5e9 }

// same compares two replies. Times to live may differ by the time between the two readings of the clocks; in
// seconds, by one more. Of the errors of Lua itself, only the positions are compared.
func (p *pair) same(a, b fakeredis.Reply, seconds bool) bool {
	if a.Kind() != b.Kind() || len(a.List()) != len(b.List()) {
		return false
	}
	for i := range a.List() {
		if !p.same(a.List()[i], b.List()[i], seconds) {
			return false
		}
	}
	differ := max(a.Int()-b.Int(), b.Int()-a.Int())
	switch {
	case a.IsError():
		return place(a.Text()) == place(b.Text())
	case seconds && min(a.Int(), b.Int()) > 0:
		return differ <= 1+p.slack.Milliseconds()/1000
	case a.Kind() == fakeredis.KindInt && maybeTime(a.Int()) && maybeTime(b.Int()):
		return differ <= p.slack.Milliseconds()
	}
	return a.Int() == b.Int() && a.Text() == b.Text()
}

var luaError = regexp.MustCompile(`(user_script:\d+:) .* (script: [0-9a-f]{40}, on @user_script:\d+\.)$`)

func place(text string) string {
	if strings.HasPrefix(text, "ERR Error compiling script") {
		return "does not compile"
	}
	return luaError.ReplaceAllString(text, "$1 … $2")
}

// sameData compares all keys, then deletes them.
func (p *pair) sameData() {
	p.Helper()
	l := &link{pair: p, real: p.admin, sim: p.sim.Connect(nil)}
	keys := p.sim.Keys(time.Now())
	if real := p.real.Keys(p); strings.Join(real, " ") != strings.Join(keys, " ") {
		p.note("real %q\nsim  %q", real, keys)
		p.fail("the keys differ")
	}
	for _, key := range keys {
		l.do("GET", key)
		l.do("ZRANGE", key, "0", "-1", "WITHSCORES")
		l.do("PTTL", key)
	}
	l.do("FLUSHALL")
}

package fakeredis_test

import (
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
)

// A fault puts both servers into the same state, or out of it.
type fault func(p *pair, g generator, on bool)

var faults = []fault{beFull, beReplica, forbid}

func beFull(p *pair, _ generator, on bool) {
	p.sim.Full = on
	p.control("CONFIG", "SET", "maxmemory", map[bool]string{true: "1", false: "0"}[on])
}

func beReplica(p *pair, _ generator, on bool) {
	p.sim.Replica = on
	if on {
		p.control("REPLICAOF", "127.0.0.1", "1") // no server listens there
	} else {
		p.control("REPLICAOF", "NO", "ONE")
	}
}

// forbid takes some permissions away from the users, or grants them all.
func forbid(p *pair, g generator, on bool) {
	p.sim.NoPerm, p.sim.NoKeys, p.sim.NoChannels = nil, nil, false
	rules := []any{"SETUSER", "default", "+@all", "allkeys", "allchannels"}
	if !on {
		p.control("ACL", rules...)
		return
	}
	p.sim.NoPerm = map[string]bool{}
	for range g.IntN(3) {
		name := g.of("get", "set", "del", "pttl", "pexpire", "zadd", "zrange", "zscore", "zrem", "publish", "evalsha", "eval", "script", "script|load", "pubsub|numsub", "ping", "subscribe")
		p.sim.NoPerm[name] = true
		rules = append(rules, "-"+name)
	}
	if g.one(2) {
		kept := g.of("rec:1", "lock:1", "queue:1", "list:1", "mark:1", "time:1", "a")
		p.sim.NoKeys = func(key string) bool { return key != "b" && key != "rec:2" && key != "lock:2" && key != kept }
		rules = append(rules, "resetkeys", "~b", "~rec:2", "~lock:2", "~"+kept)
	}
	if g.one(2) {
		p.sim.NoChannels = true
		rules = append(rules, "resetchannels")
	}
	p.control("ACL", rules...)
}

func TestRandomFaultsAreTheSameOnARealRedis(t *testing.T) {
	p, all := newPair(t), framedScripts(t)
	l, ear := p.connect(), p.connect()
	for p.seed = range *rounds {
		g := newGenerator(p.seed)
		for range 10 {
			ear.leaveAll() // Redis would disconnect it if its channels became forbidden
			faults[g.IntN(len(faults))](p, g, g.one(2))
			for range 40 {
				if g.one(3) {
					l.do(g.command()...)
				} else {
					g.step(l, ear, all)
				}
			}
			ear.quiet()
		}
		for _, f := range faults {
			f(p, g, false)
		}
		p.sameData()
	}
}

// leaveAll ends the subscriptions of forms; there are no others.
func (l *link) leaveAll() {
	l.do("UNSUBSCRIBE", "latchkey:wake:A")
	l.do("UNSUBSCRIBE", "latchkey:wake:B")
	l.do("PUNSUBSCRIBE", "*")
	l.quiet()
}

// everyCommand has a call of each command, and some wrong calls.
var everyCommand = [][]string{
	{"PING"}, {"TIME", "wrong"}, {"GET", "k"}, {"SET", "k", "v"}, {"SETNX", "k", "v"}, {"SETEX", "k", "100", "v"}, {"GETSET", "k", "v"},
	{"ZADD", "z", "1", "m"}, {"ZCARD", "z"}, {"ZSCORE", "z", "m"}, {"ZRANGE", "z", "0", "-1"}, {"ZREM", "z", "n"},
	{"ZREMRANGEBYSCORE", "z", "2", "3"},
	{"GETRANGE", "k", "0", "1"}, {"STRLEN", "k"}, {"MGET", "k"}, {"DEL", "k"}, {"EXISTS", "k"}, {"RENAME", "k", "l"},
	{"EXPIRE", "k", "100"}, {"PEXPIRE", "k", "100000"}, {"PTTL", "k"}, {"TTL", "k"}, {"PERSIST", "k"},
	{"PUBLISH", "c", "m"}, {"PUBSUB", "NUMSUB", "c"}, {"PUBSUB", "NUMPAT"}, {"SUBSCRIBE", "c"}, {"UNSUBSCRIBE", "c"},
	{"PSUBSCRIBE", "*"}, {"PUNSUBSCRIBE", "*"}, {"UNSUBSCRIBE"}, {"PUNSUBSCRIBE"},
	{"SCRIPT", "LOAD", "return 1"}, {"SCRIPT", "EXISTS", "x"}, {"SCRIPT", "FLUSH"}, {"SCRIPT", "NONSENSE"}, {"SCRIPT"},
	{"EVAL", "return 1", "0"}, {"EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"}, {"LPUSH", "l", "v"},
	{"ROLE"}, {"FLUSHALL"}, {"AUTH", "default", "any"}, {"SELECT", "0"}, {"CLIENT", "SETNAME", "me"}, {"GET"}, {"NONSENSE"},
}

// askEverything compares the replies to every command.
func (l *link) askEverything() {
	l.Helper()
	for _, args := range everyCommand {
		l.do(args...)
	}
}

func TestEveryCommandDoesTheSameOnARealRedis(t *testing.T) {
	newPair(t).connect().askEverything()
	for _, name := range fakeredis.Implemented() {
		inTable := slices.ContainsFunc(everyCommand, func(args []string) bool { return fakeredis.Lookup(args) == name })
		if !inTable {
			t.Errorf("everyCommand has no call of %s", name)
		}
	}
}

func TestABusyServerRefusesTheSame(t *testing.T) {
	p := newPair(t, "--busy-reply-threshold", "1")
	l := p.connect()
	p.send(p.dial(), []string{"EVAL", "while true do end", "0"})
	l.await(fakeredis.BusyError)
	p.sim.Busy = true
	l.askEverything()
	p.sim.Full = true // the memory is not checked while a script runs
	l.do("SET", "k", "v")
	p.sim.Full, p.sim.Busy = false, false
	p.control("SCRIPT", "KILL")
	l.await("PONG")
	l.askEverything()
}

func TestALoadingServerRefusesTheSame(t *testing.T) {
	p := newPair(t, "--enable-debug-command", "yes", "--rdbcompression", "no",
		"--loading-process-events-interval-bytes", "1024")
	l := p.connect()
	p.control("DEBUG", "POPULATE", "5000", "key", "1000")
	p.control("CONFIG", "SET", "key-load-delay", "20000") // microseconds: loading takes 100 s, until the delay is changed
	p.send(p.dial(), []string{"DEBUG", "RELOAD"})
	l.await(fakeredis.LoadingError)
	p.sim.Loading = true
	l.askEverything()
	p.control("CONFIG", "SET", "key-load-delay", "0")
	p.sim.Loading = false
	l.await("PONG")
	p.control("FLUSHALL")
	l.askEverything()
}

// await asks the real Redis until it gives this answer.
func (l *link) await(answer string) {
	l.Helper()
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		if l.ask([]string{"PING"}).Text() == answer {
			return
		}
	}
	l.Fatalf("no reply was %q", answer)
}

// An expired key exists on neither server.
func TestKeysExpireAsOnARealRedis(t *testing.T) {
	l := newPair(t).connect()
	l.do("SET", "set", "v", "PX", "1")
	l.do("LPUSH", "list", "v")
	l.do("PEXPIRE", "list", "1")
	l.do("SET", "stays", "v", "PX", "1")
	l.do("SET", "stays", "w")
	for l.ask([]string{"EXISTS", "set", "list"}).Int() > 0 { // on the real server, whose keys were set a little later
	}
	l.do("EXISTS", "set", "list")
	l.sameData()
}

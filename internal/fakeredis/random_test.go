package fakeredis

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

var rounds = flag.Uint64("rounds", 40, "how many `sequences` of random commands each comparison has")

// A generator makes commands, most of them sensible.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 11))} }

func (g generator) of(list ...string) string { return list[g.IntN(len(list))] }

func (g generator) one(in int) bool { return g.IntN(in) == 0 }

func (g generator) key() string { return g.of("a", "b", "c", "d") }

// setKey is mostly that of a sorted set.
func (g generator) setKey() string { return g.of("z", "z", "z", g.key()) }

func (g generator) value() string {
	return g.of("", "x", "10", "a longer value", "\r\n", "\x00\xff", "-3", strconv.Itoa(g.IntN(1000)))
}

// number returns one, or what only looks like one.
func (g generator) number(from, to int) string {
	if g.one(8) {
		return g.of("0", "-1", "abc", "1.5", "", "+5", "007", " 5", "1e3", "9223372036854775807", "-9223372036854775808",
			"99999999999999999999", "9223372036854775", "9223372036854776")
	}
	return strconv.Itoa(from + g.IntN(to-from))
}

func (g generator) of2(list ...[]string) []string { return list[g.IntN(len(list))] }

// score returns one of a member of a sorted set, or what only looks like one.
func (g generator) score() string {
	if g.one(6) {
		return g.of("", "abc", "inf", "-inf", "+Infinity", "nan", " 5", "5 ", "0x1F", "1e3", "-0", ".5", "3.25", "1e400", "7\x00", "1_0")
	}
	return g.of("1700000000000", "17e11", strconv.Itoa(g.IntN(10)))
}

// bound returns an end of a range of scores.
func (g generator) bound() string {
	return g.of("", "", "(") + g.of("-inf", "+inf", "inf", g.score(), g.score(), g.score())
}

func (g generator) ms() string { return g.number(shortest, longest) }
func (g generator) s() string  { return g.number(shortest/1000, longest/1000) }

func (g generator) casing(name string) string {
	if g.one(5) && len(name) > 2 {
		return name[:1] + string(name[1]|0x20) + name[2:]
	}
	return name
}

// command returns one that a client may send at any time.
func (g generator) command() []string {
	args := g.plain()
	args[0] = g.casing(args[0])
	if g.one(30) {
		args = append(args, g.value())
	}
	if g.one(30) && len(args) > 1 {
		args = args[:len(args)-1]
	}
	return args
}

func (g generator) plain() []string {
	switch g.IntN(31) {
	case 0, 1:
		return []string{"GET", g.key()}
	case 2, 3, 4, 5, 6:
		return append([]string{"SET", g.key(), g.value()}, g.setOptions()...)
	case 7:
		if g.one(3) {
			return []string{"SETEX", g.key(), g.s(), g.value()}
		}
		return []string{g.of("SETNX", "GETSET"), g.key(), g.value()}
	case 8:
		return []string{"GETRANGE", g.key(), g.number(-5, 5), g.number(-5, 5)}
	case 9:
		return []string{g.of("STRLEN", "TTL", "PTTL", "PERSIST", "EXISTS", "DEL", "MGET"), g.key()}
	case 10:
		return []string{g.of("EXISTS", "DEL", "MGET"), g.key(), g.key()}
	case 11:
		return []string{"RENAME", g.key(), g.key()}
	case 12:
		return []string{"EXPIRE", g.key(), g.s()}
	case 13, 14:
		return append([]string{"PEXPIRE", g.key(), g.ms()}, g.expireOptions()...)
	case 15:
		return []string{"LPUSH", g.key(), g.value(), g.value()}
	case 16:
		return []string{"PING", g.value()}
	case 17:
		return []string{g.of("ROLE", "PING")}
	case 18:
		return []string{"PUBLISH", g.channel(), g.value()}
	case 19:
		return []string{"PUBSUB", g.of("NUMSUB", "numsub"), g.channel(), g.channel()}
	case 20:
		return []string{g.of("PUBSUB", "SCRIPT", "pubsub"), g.of("NUMPAT", "NUMSUB", "NONSENSE", "", "a\nb")}
	case 21:
		return []string{"SCRIPT", g.of("EXISTS", "LOAD", "FLUSH"), g.of("return 1", "return (", "sync", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db")}
	case 22:
		return []string{"EVALSHA", g.of("e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "x"), g.number(0, 2)}
	case 23:
		return []string{"EVAL", "return {#KEYS, #ARGV, KEYS[1], ARGV[1]}", g.number(0, 3), g.key(), g.value()}
	case 24:
		return []string{"ZADD", g.setKey(), g.score(), g.value()}
	case 25:
		return []string{"ZADD", g.setKey(), g.score(), g.value(), g.score(), g.value()}
	case 26:
		return append([]string{"ZRANGE", g.setKey()}, g.of2(
			[]string{g.number(-4, 4), g.number(-4, 4)},
			[]string{g.number(-4, 4), g.number(-4, 4), "WITHSCORES"},
			[]string{g.bound(), g.bound(), "BYSCORE"},
			[]string{g.bound(), g.bound(), "byscore", "WITHSCORES"},
			[]string{g.bound(), g.bound(), "nonsense"})...)
	case 27:
		return g.of2([]string{"ZCARD", g.setKey()}, []string{"ZSCORE", g.setKey(), g.value()}, []string{"ZREM", g.setKey(), g.value(), g.value()},
			[]string{"ZREMRANGEBYSCORE", g.setKey(), g.bound(), g.bound()})
	case 28:
		return []string{g.of("GOT", "LLEN2", "FLUSHALL", "FOO\r\nBAR", "Host2:", ""), g.value(), g.value()}
	default:
		return append([]string{"EVAL", viaScript[g.IntN(len(viaScript))], "0"}, g.plain()...)
	}
}

// viaScript are scripts that execute the command in their arguments.
var viaScript = []string{
	"return redis.call(unpack(ARGV))",
	"return redis.pcall(unpack(ARGV))",
	"local r = redis.call(unpack(ARGV))\nreturn {type(r), r}",
	"redis.call('DEL', 'nothing')\nreturn redis.pcall(unpack(ARGV))",
	"local ok, r = pcall(redis.call, unpack(ARGV))\nreturn {ok and 1 or 0, type(r), r}",
}

func (g generator) channel() string { return g.of("news", "sport", "latchkey:wake:A") }

func (g generator) setOptions() (options []string) {
	for g.one(2) {
		switch g.IntN(8) {
		case 0, 1:
			options = append(options, g.of("NX", "XX", "nx", "Xx"))
		case 2:
			options = append(options, g.of("GET", "KEEPTTL", "keepttl"))
		case 3:
			options = append(options, "EX", g.s())
		case 4:
			options = append(options, "PXAT", g.of("1", strconv.FormatInt(time.Now().UnixMilli()+50_000, 10)))
		case 5:
			options = append(options, g.of("EX", "nonsense", "EXAT"))
		default:
			options = append(options, "PX", g.ms())
		}
	}
	return options
}

func (g generator) expireOptions() []string {
	if g.one(2) {
		return nil
	}
	if g.one(4) {
		return []string{g.of("NX", "gt", "LT", "XX"), g.of("NX", "GT", "lt", "XX", "no")}
	}
	return []string{g.of("NX", "XX", "gt", "LT")}
}

func TestRandomCommandsDoTheSameOnARealRedis(t *testing.T) {
	p := newPair(t)
	l := p.connect()
	for p.seed = range *rounds {
		g := newGenerator(p.seed)
		for range 500 {
			l.do(g.command()...)
		}
		p.sameData()
	}
}

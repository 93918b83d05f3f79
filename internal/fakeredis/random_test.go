package fakeredis_test

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rounds = flag.Uint64("rounds", 10, "how many `sequences` of random commands each comparison has")

// A generator makes commands, most of them sensible.
type generator struct {
	*rand.Rand
	times *int // how many times to live it has drawn
}

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 11)), new(int)} }

// time returns a time to live in ms that differs from all others.
func (g generator) time() int {
	*g.times++
	return shortest + apart*(*g.times*1231%times)
}

func (g generator) of(list ...string) string { return list[g.IntN(len(list))] }

func (g generator) one(in int) bool { return g.IntN(in) == 0 }

// forms are the commands of clients. Each word is a kind of argument, or is sent as it is. A | separates
// alternatives.
var forms = strings.Split(`GET key
GET key
SET key value
SET key value
SET key value
SET key value
SET key value
SETNX|GETSET key value
GETRANGE key small small
STRLEN|TTL|PTTL|PERSIST|EXISTS|DEL|MGET key
EXISTS|DEL|MGET key key
RENAME key key
EXPIRE key seconds
PEXPIRE key ms
PEXPIRE key millis NX|XX|gt|LT
PEXPIRE key millis NX|gt|LT|XX NX|GT|lt|XX|no
LPUSH key value value
PING value
PING
PUBLISH channel value
PUBSUB NUMSUB|numsub channel channel
PUBSUB|SCRIPT|pubsub NUMPAT|NUMSUB|NONSENSE|odd
SCRIPT EXISTS|LOAD|FLUSH script
EVALSHA sha small
EVAL asks small key value
ZADD set score value
ZADD set score value score value
ZRANGE set small small
ZRANGE set small small WITHSCORES
ZRANGE set bound bound BYSCORE
ZRANGE set bound bound byscore WITHSCORES
ZRANGE set bound bound nonsense
ZCARD set
ZSCORE set value
ZREM set value value
ZREMRANGEBYSCORE set bound bound
GOT|LLEN2|FLUSHALL|Host2:|odd value value`, "\n")

func init() {
	for kind, list := range map[string][]string{
		"key":     {"a", "b", "c", "d"},
		"set":     {"z", "z", "z", "a", "b"}, // mostly a sorted set
		"odd":     {"", "a\nb", "FOO\r\nBAR"},
		"channel": {"news", "sport", "latchkey:wake:A"},
		"script":  {"return 1", "return (", "sync", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"},
		"sha":     {"e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "x"},
		"asks":    {"return {#KEYS, #ARGV, KEYS[1], ARGV[1]}"},
		"value":   {"", "x", "10", "a longer value", "\r\n", "\x00\xff", "-3", "7", "42", "123"},
	} {
		arguments[kind] = list
	}
}

func (g generator) words(form string) (args []string) {
	for kind := range strings.FieldsSeq(form) {
		args = append(args, g.word(kind))
	}
	return args
}

// word returns an argument for a word of a form.
func (g generator) word(kind string) string {
	kind = g.of(strings.Split(kind, "|")...)
	switch kind {
	case "small":
		return g.number(-4, 5)
	case "ms":
		return g.lasting(1)
	case "millis": // always valid
		return strconv.Itoa(g.time())
	case "moment":
		return g.of("1", strconv.FormatInt(time.Now().UnixMilli()+int64(g.time()), 10))
	case "seconds":
		return g.lasting(1000)
	case "score":
		return g.score()
	case "bound":
		return g.of("", "", "(") + g.of("-inf", "+inf", "inf", g.score(), g.score(), g.score())
	}
	if list := arguments[kind]; list != nil {
		return g.of(list...)
	}
	return kind
}

// number returns a number, or a text that looks like one.
func (g generator) number(from, to int) string {
	if g.one(8) {
		return g.of("0", "-1", "abc", "1.5", "", "+5", "007", " 5", "1e3", "9223372036854775807", "-9223372036854775808",
			"99999999999999999999", "9223372036854775", "9223372036854776")
	}
	return strconv.Itoa(from + g.IntN(to-from))
}

// score returns a score of a member of a sorted set, or a text that looks like one.
func (g generator) score() string {
	if g.one(6) {
		return g.of("", "abc", "inf", "-inf", "+Infinity", "nan", " 5", "5 ", "0x1F", "1e3", "-0", ".5", "3.25", "1e400", "7\x00", "1_0")
	}
	return g.of("1700000000000", "17e11", strconv.Itoa(g.IntN(10)))
}

// lasting returns a time to live in units of that many ms, or a text that looks like one.
func (g generator) lasting(unit int) string {
	if g.one(8) {
		return g.number(-1, 1)
	}
	return strconv.Itoa(g.time() / unit)
}

// command returns a command that a client may send at any time.
func (g generator) command() []string {
	args := g.plain()
	if g.one(30) {
		args = append(args, g.word("value"))
	}
	if g.one(30) && len(args) > 1 {
		args = args[:len(args)-1]
	}
	return args
}

func (g generator) plain() (args []string) {
	if g.one(15) {
		return append([]string{"EVAL", g.of(viaScript...), "0"}, g.plain()...)
	}
	args = g.words(g.of(forms...))
	for args[0] == "SET" && len(args) > 2 && g.one(2) {
		args = append(args, g.words(g.of("NX|XX|nx|Xx", "NX|XX", "GET|KEEPTTL|keepttl", "EX seconds", "PXAT moment", "EX|nonsense|EXAT", "PX ms", "PX ms"))...)
	}
	if g.one(5) {
		args[0] = strings.ToLower(args[0])
	}
	return args
}

// viaScript are scripts that execute the command in their arguments.
var viaScript = []string{
	"return redis.call(unpack(ARGV))",
	"return redis.pcall(unpack(ARGV))",
	"local r = redis.call(unpack(ARGV))\nreturn {type(r), r}",
	"redis.call('DEL', 'nothing')\nreturn redis.pcall(unpack(ARGV))",
	"local ok, r = pcall(redis.call, unpack(ARGV))\nreturn {ok and 1 or 0, type(r), r}",
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

// pattern returns a pattern of Lua, sometimes an invalid one.
func (g generator) pattern() (p string) {
	if g.one(4) {
		p = "^"
	}
	for range 1 + g.IntN(5) {
		p += g.of("a", "b", ".", "%a", "%d", "%s", "%w", "%W", "%x", "%p", "%c", "%u", "%l", "%z", "%A", "[ab]", "[^a]", "[a-c]", "[%a-]", "[]a]", "[^]]", "[a-]",
			"(", ")", "(a)", "(.-)", "()", "%1", "%b()", "%bxy", "%f[%a]", "%f[^a]", "%.", "%%", "$", "-", "[", "]", "%", "^", "\x00", "/", " ", "\xff")
		p += g.of("", "", "", "*", "+", "-", "?")
	}
	return p
}

func (g generator) text() (s string) {
	for range g.IntN(8) {
		s += g.of("a", "b", "ab", "(", ")", "x", "y", "1", " ", "\n", "%", ".", "-", "]", "A", "\x00", "\xff", "/")
	}
	return s
}

func TestRandomPatternsDoTheSameOnARealRedis(t *testing.T) {
	p := newPair(t)
	l := p.connect()
	for p.seed = range *rounds {
		g := newGenerator(p.seed)
		for range 100 {
			text, pattern, from := g.text(), g.pattern(), g.of("1", "1", "2", "-1", "9")
			l.do("EVAL", "return {string.find(ARGV[1], ARGV[2], ARGV[3])}", "0", text, pattern, from)
			l.do("EVAL", "return {string.match(ARGV[1], ARGV[2], ARGV[3])}", "0", text, pattern, from)
		}
	}
}

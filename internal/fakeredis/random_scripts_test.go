package fakeredis_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
)

// framedScripts returns all scripts of the project, by their files.
func framedScripts(tb testing.TB) map[string]string {
	tb.Helper()
	all := map[string]string{}
	for file := range signatures {
		all[file] = framed(tb, file)
	}
	return all
}

// An argument of one kind, and now and then what is none.
func (g generator) argument(p *pair, kind string) string {
	switch kind {
	case "record":
		return g.of("rec:1", "rec:1", "rec:1", "rec:2", "rec:2", "rec:3") + g.stray()
	case "lock":
		return g.of("lock:1", "lock:1", "lock:2") + g.stray()
	case "staged?":
		return g.of("staged:1", "staged:1", "staged:2") + g.stray()
	case "queue":
		return g.of("queue:1", "queue:1", "queue:2") + g.stray()
	case "staged/list?":
		return g.argument(p, g.of("staged?", "list"))
	case "list", "mark":
		if key := kind + ":1"; kind == "list" || !g.one(30) {
			return key + g.stray()
		}
		return "nothing"
	case "time", "note":
		return kind + ":1" + g.stray()
	case "token", "stamp":
		return g.token()
	case "next?":
		return g.token()
	case "member*", "old":
		return g.of("", "rec:1", "rec:2", "rec:3")
	case "ends":
		return g.of("1700000000000", "1700000050000", "1700000100000", "1699999900000", "1699999300000", "abc")
	case "most":
		return g.of("-1", "-1", "0", "1", "2", "")
	case "refuse":
		return g.of("0", "1")
	case "epoch":
		return g.epoch()
	case "place":
		return g.place()
	case "lease", "lease?":
		return g.lease()
	case "idle":
		return g.of("0", "-"+g.lease(), g.lease(), g.lease())
	case "now":
		return g.of("1700000000000", "1700000000000", "1700000000000", "1700000200000", "", "abc")
	case "ttl":
		return g.of("", g.lease(), g.lease())
	case "delay":
		return g.of("0", g.lease())
	case "text":
		return g.stored()
	case "text/none":
		return g.of("", g.stored())
	case "base":
		return g.base(p)
	case "size":
		return g.of("100000", "100000", "100000", "20", "x")
	case "began":
		return g.of("1650000000000", "1650000000000", "1650000000000", "1690000000000", "1700000000000", "", "abc")
	case "mode":
		return g.of("take", "extend", "release")
	case "moment":
		return g.of("1700000000000", "1700000005000", "1700000060000", "1700000200000", "1700000000000.5")
	}
	p.Fatalf("no argument is a %q", kind)
	return ""
}

// stray makes some keys others, so that some do not exist.
func (g generator) stray() string {
	if g.one(20) {
		return "x"
	}
	return ""
}

func (g generator) token() string {
	return "ABCDEFGHIJKLMNO" + g.of("1", "2", "3", "4") // of the length of a real one
}

func (g generator) place() string {
	if g.one(30) {
		return g.of("nonsense", "latchkey:wake:", " ", "-", "latchkey:wake:%a/1")
	}
	return g.of("", "latchkey:wake:A/1", "latchkey:wake:A/2", "latchkey:wake:B/1", "-latchkey:wake:C/1", "latchkey:wake:D/99")
}

func (g generator) stored() string {
	switch g.IntN(12) {
	case 0:
		return g.of("", "garbage", `{"v":2,"s":"T1","c":}`, `{"v":3,"s":"T1"}`)
	case 1, 2:
		return `{"v":2,"s":"` + g.token() + `","gone":1700000000000}`
	default:
		return `{"v":2,"s":"` + g.token() + `","c":` + g.of("1700000000000", "1690000000000") + g.of("", `,"g":`+g.epoch()) + g.own() + g.of(`,"d":`, `,"d":`, `,"e":`) + strconv.Itoa(g.IntN(1000)) + `}`
	}
}

func (g generator) epoch() string { return "10000000000000" + g.of("1", "1", "1", "1", "1", "2", "3") }

// marked is what the mark of a user may be.
func (g generator) marked() string {
	return g.of("", "nonsense", g.epoch(), g.epoch(), g.epoch()+" rec:1", g.epoch()+" rec:2 rec:1", g.epoch()+" rec:1 rec:2 rec:3")
}

// own returns the timeouts of a session's own, which most have not.
func (g generator) own() string {
	return g.of("", "", "", `,"i":`+strconv.Itoa(longest)) + g.of("", "", "", `,"u":1700000100000`, `,"u":1690000000000`)
}

// base is the name of a record, mostly that of one there is.
func (g generator) base(p *pair) string {
	text, isString, ok := p.sim.Raw(g.argument(p, "record"))
	switch {
	case g.one(4):
		return g.of("foreign", "", g.token(), fakeredis.SHA1Hex("garbage"))
	case !ok:
		return g.token()
	case !isString:
		return "foreign"
	case len(text) > 50:
		return text[12:28]
	default:
		return fakeredis.SHA1Hex(text)
	}
}

// lease returns a time to live, or what is none: nothing that a script could take for
// so short a time that the two clocks might disagree.
func (g generator) lease() string {
	if g.one(10) {
		return g.of("", "0", "-1", "abc", "1.5", "+50000", "1e5", " 70000 ", "0x10000", "9223372036854775807", "99999999999999999999")
	}
	return strconv.Itoa(shortest + g.IntN(longest-shortest))
}

// call returns the file of a script and the arguments for it.
func (g generator) call(p *pair) (file string, _ []string) {
	files := slices.Sorted(maps.Keys(signatures))
	file = g.of(files...)
	if g.one(2) {
		file = g.of("store/take.lua", "store/commit.lua", "store/take.lua, of a user", "store/commit.lua, of a user", "store/login.lua")
	}
	signature := signatures[file]
	keys, others := g.some(signature.keys), g.some(signature.args)
	args := []string{strconv.Itoa(len(keys))}
	for i, kind := range append(keys, others...) {
		if kind == "mark" && i >= len(keys) { // as it was read
			mark, _, _ := p.sim.Raw("mark:1")
			args = append(args, g.of(g.marked(), "", mark, mark))
			continue
		}
		args = append(args, g.argument(p, kind))
	}
	number := int64(2*listed + g.IntN(1<<30))
	if g.one(5) {
		number = -number // a repetition
	}
	return file, append(args, strconv.FormatInt(number, 10))
}

// some returns the kinds in a list, with those that have a ? or without, and one that has a * any number
// of times.
func (g generator) some(kinds string) []string {
	list := strings.Fields(kinds)
	if g.one(2) {
		list = slices.DeleteFunc(list, func(kind string) bool { return strings.HasSuffix(kind, "?") })
	}
	if n := len(list); n > 0 && strings.HasSuffix(list[n-1], "*") {
		list = append(list[:n-1], slices.Repeat(list[n-1:], g.IntN(4))...)
	}
	return list
}

// disturb returns what others do to the data of the project.
func (g generator) disturb(p *pair) []string {
	key := g.argument(p, g.of("record", "lock", "queue", "staged?", "list", "mark", "time", "note"))
	switch g.IntN(11) {
	case 6, 7, 8:
		return []string{"SET", g.argument(p, "mark"), g.marked(), "PX", g.lease()}
	case 9, 10:
		return []string{"ZADD", g.argument(p, "list"), g.argument(p, "ends"), g.argument(p, "member*")}
	case 0:
		return []string{"DEL", key}
	case 1:
		return []string{"LPUSH", key, "x"}
	case 2:
		return []string{"SET", g.of("time:1", "note:1"), g.of("1700000000000", "1700000050000.25", "7", "x", "1700000050000 s "+g.token()), "PX", g.lease()}
	case 3:
		return []string{"SCRIPT", "FLUSH"}
	case 4:
		return []string{"SET", g.argument(p, g.of("record", "staged?")), g.stored(), "PX", g.lease()}
	default:
		return []string{"SET", key, g.of(g.token(), g.place(), g.place()+" "+g.place()+" "), "PX", g.lease()}
	}
}

func TestRandomCallsOfTheProjectsScriptsDoTheSameOnARealRedis(t *testing.T) {
	p, all := newPair(t), framedScripts(t)
	l, ear := p.connect(), p.connect()
	for p.seed = range *rounds {
		g := newGenerator(p.seed)
		for range 500 {
			g.step(l, ear, all)
		}
		ear.quiet()
		p.sameData()
	}
}

// step does one of what the project does, others do to it, and its listeners do.
func (g generator) step(l, ear *link, all map[string]string) {
	switch n := g.IntN(40); {
	case n == 0:
		ear.do(g.of("SUBSCRIBE", "UNSUBSCRIBE"), "latchkey:wake:"+g.of("A", "B"))
	case n == 1:
		ear.do(g.of("PSUBSCRIBE", "PUNSUBSCRIBE"), "*")
	case n == 2:
		ear.quiet()
	case n < 8:
		l.do(g.disturb(l.pair)...)
	default:
		file, args := g.call(l.pair)
		if g.one(20) || l.do(append([]string{"EVALSHA", fakeredis.SHA1Hex(all[file])}, args...)...).Text() == fakeredis.ErrNoScript {
			l.do(append([]string{"EVAL", all[file]}, args...)...)
		}
		l.prolong("lock:1", "lock:1x", "lock:2", "lock:2x", "rec:1", "rec:1x", "rec:2", "rec:2x", "rec:3", "rec:3x",
			"list:1", "list:1x", "mark:1", "mark:1x",
			"staged:1", "staged:1x", "staged:2", "staged:2x")
	}
}

// prolong gives keys more time to live to which a script has given little: in the last
// ms of it the two clocks might disagree.
func (l *link) prolong(keys ...string) {
	for _, key := range keys {
		if left, ok := l.pair.sim.Left(time.Now(), key); ok && left > 0 && left < shortest*time.Millisecond/2 {
			l.do("PTTL", key)
			l.do("PEXPIRE", key, strconv.Itoa(longest))
		}
		// Where that was refused, both forget it before such a time is compared.
		if left, ok := l.pair.sim.Left(time.Now(), key); ok && left > 0 && left < 300*time.Millisecond {
			time.Sleep(left + l.slack)
		}
	}
}

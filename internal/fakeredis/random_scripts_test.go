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

// framedScripts returns all scripts of the project, by their files. Times to live that are seconds there are
// hours here.
func framedScripts(tb testing.TB) map[string]string {
	tb.Helper()
	all := map[string]string{}
	for file := range signatures {
		all[file] = seconds.Replace(framed(tb, file))
	}
	return all
}

var seconds = strings.NewReplacer("local time = redis.call('TIME')", "local time = {1700000000, 250}", "deaf and 250 or 1000)", "deaf and 25000000 or 10000000)", "'PX', 60000)", "'PX', 60000000)", ", 60000)", ", 60000000)")

// arguments has valid arguments of the kinds that depend on nothing else, and a few invalid ones.
var arguments = map[string][]string{
	"member*": {"", "rec:1", "rec:2", "rec:3"},
	"old":     {"", "rec:1", "rec:2", "rec:3"},
	"ends":    {"1700000000000", "1700000050000", "1700000100000", "1699999900000", "abc"},
	"most":    {"-1", "-1", "0", "1", "2", ""},
	"refuse":  {"0", "1"},
	"instead": {"", "", "rec:1", "rec:2", "rec:3 rec:1"},
	"flag?":   {"", "", "1"},
	"now":     {"1700000000000", "1700000000000", "1700000000000", "1700000200000", "", "abc"},
	"size":    {"100000", "100000", "100000", "20", "x"},
	"began":   {"1650000000000", "1650000000000", "1650000000000", "1690000000000", "1700000000000", "", "abc"},
	"mode":    {"take", "extend", "release"},
	"moment":  {"1700000000000", "1700000005000", "1700000060000", "1700000200000", "1700000000000.5"},
	"epoch":   {"100000000000001", "100000000000001", "100000000000001", "100000000000001", "100000000000002", "100000000000003"},
	"record":  {"rec:1", "rec:1", "rec:1", "rec:2", "rec:2", "rec:3"},
	"lock":    {"lock:1", "lock:1", "lock:2"},
	"staged?": {"staged:1", "staged:1", "staged:2"},
	"queue":   {"queue:1", "queue:1", "queue:2"},
	"list":    {"list:1"},
	"mark":    {"mark:1"},
	"ended":   {"ended:1"},
	"sent":    {"1700000000000000", "1700000000000000", "1700000000500000", "1699999999500000", "1699990000000000", "0", "abc"},
	"within":  {"1000000", "1000000", "2000000", "x"},
	"name":    {"A", "A", "B", "C"},
	"time":    {"time:1"},
	"note":    {"note:1"},
}

func (g generator) argument(p *pair, kind string) string {
	if list := arguments[kind]; list != nil {
		text := g.of(list...)
		if strings.Contains(text, ":") && g.one(20) {
			text += "x" // so that some keys do not exist
		}
		return text
	}
	switch kind {
	case "staged/list?":
		return g.argument(p, g.of("staged?", "list"))
	case "number":
		return g.of("", "", "", "", "-") + strconv.Itoa(2*longest+g.IntN(longest/2)) // even four times this is less than the nearly infinite times
	case "token", "stamp", "next?":
		return g.token()
	case "place":
		return g.place()
	case "lease", "lease?":
		return g.lease()
	case "idle":
		return g.of("0", g.lease(), g.lease())
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
	}
	p.Fatalf("no argument is a %q", kind)
	return ""
}

func (g generator) token() string {
	return "ABCDEFGHIJKLMNO" + g.of("1", "2", "3", "4") // as long as a real one
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

func (g generator) epoch() string { return g.of(arguments["epoch"]...) }

// marked returns a possible mark of a user.
func (g generator) marked() string {
	unclaimed := g.of("", "", " ~rec:1>...........", " ~rec:1>rec:2 ~rec:2>rec:3", " ~rec:2>rec:3 ~rec:1>rec:3 ~rec:3>...........", " ~rec:1>rec:2 ~rec:2>rec:1", " ~rec:9>rec:1")
	return g.of("", "nonsense", g.epoch(), g.epoch()+unclaimed, g.epoch()+" rec:1"+unclaimed, g.epoch()+" rec:2 rec:1"+unclaimed, g.epoch()+" rec:1 rec:2 rec:3"+unclaimed)
}

// own returns the timeouts that a session itself has; most have none.
func (g generator) own() string {
	return g.of("", "", "", `,"i":`+strconv.Itoa(longest)) + g.of("", "", "", `,"u":1700100000000`, `,"u":1690000000000`)
}

// base returns the revision of a record, mostly that of an existing one.
func (g generator) base(p *pair) string {
	text, ok := p.sim.Get(time.Now(), g.argument(p, "record"))
	switch {
	case g.one(4):
		return g.of("foreign", "", g.token(), fakeredis.SHA1("garbage"))
	case !ok:
		return g.of("foreign", g.token())
	case len(text) > 50:
		return text[12:28]
	default:
		return fakeredis.SHA1(text)
	}
}

// lease returns a time to live, sometimes an invalid one.
func (g generator) lease() string {
	if g.one(10) {
		return g.of("", "0", "-1", "abc", "5000000.5", "+5000000", "1e7", " 7000000 ", "0x1000000", "9223372036854775807", "99999999999999999999")
	}
	return strconv.Itoa(g.time())
}

// call returns the file of a script, and arguments for it.
func (g generator) call(p *pair) (file string, _ []string) {
	files := slices.Sorted(maps.Keys(signatures))
	file = g.of(files...)
	if g.one(2) {
		file = g.of("internal/records/take.lua", "internal/records/commit.lua", "internal/records/take.lua, of a user", "internal/records/commit.lua, of a user", "internal/records/login.lua")
	}
	signature := signatures[file]
	keys, others := g.some(signature.keys), append([]string{"number"}, g.some(signature.args)...)
	args := []string{strconv.Itoa(len(keys))}
	for i, kind := range append(keys, others...) {
		if strings.HasPrefix(kind, "mark") && i >= len(keys) { // the argument, not the key
			mark, _ := p.sim.Get(time.Now(), "mark:1")
			args = append(args, g.of(g.marked(), "", mark, mark))
			continue
		}
		args = append(args, g.argument(p, kind))
	}
	return file, args
}

// some returns the kinds in a list. Kinds with a ? are kept or left out; a kind with a * is repeated any
// number of times.
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

// disturb returns a command by which another client changes the data of the project.
func (g generator) disturb(p *pair) []string {
	key := g.argument(p, g.of("record", "lock", "queue", "staged?", "list", "mark", "ended", "time", "note"))
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

// step makes one change, by a script, another client, or a listener.
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
		if g.one(20) || l.do(append([]string{"EVALSHA", fakeredis.SHA1(all[file])}, args...)...).Text() == fakeredis.NoScriptError {
			l.do(append([]string{"EVAL", all[file]}, args...)...)
		}
	}
}

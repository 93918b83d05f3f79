package fakeredis_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// signatures tell what the keys and arguments of the project's scripts are. The last
// argument of each is the number of the call.
var signatures = map[string]signature{
	"internal/lease/extend.lua":       {"lock", "token lease"},
	"internal/lease/pass.lua":         {"lock queue", "token token lease"},
	"internal/lease/quit.lua":         {"lock queue", "place"},
	"internal/lease/release.lua":      {"lock queue", "token delay"},
	"internal/lease/take.lua":         {"lock queue", "token lease place"},
	"locker/timestamp.lua":            {"time note", "mode token delay moment"},
	"internal/records/commit.lua":     {"record lock queue staged?", "token base ttl text/none next? lease?"},
	"internal/records/create.lua":     {"record", "sent within stamp text lease"},
	"internal/records/drop.lua":       {"record", "stamp"},
	"internal/records/end.lua":        {"record", "text lease"},
	"internal/records/extend.lua":     {"record lock", "token lease base"},
	"internal/records/load.lua":       {"record", "began idle size delay delay now"},
	"internal/records/optimistic.lua": {"record lock queue staged?", "base text lease"},
	"internal/records/take.lua":       {"record lock queue", "token lease size began place idle now"},

	"internal/records/endall.lua":                {"list mark", "sent within name member*"},
	"internal/records/lost.lua":                  {"list mark", ""},
	"internal/records/login.lua":                 {"record list mark", "sent within sent stamp text lease lease old most refuse epoch"},
	"internal/records/commit.lua, of a user":     {"record lock queue staged/list? mark", "token base ttl text/none next? lease? mark"},
	"internal/records/drop.lua, of a user":       {"record list mark", "stamp"},
	"internal/records/end.lua, of a user":        {"record list mark", "text lease"},
	"internal/records/extend.lua, of a user":     {"record lock mark", "token lease base"},
	"internal/records/load.lua, of a user":       {"record mark", "began idle size delay delay now"},
	"internal/records/optimistic.lua, of a user": {"record lock queue staged? mark", "base text lease"},
	"internal/records/take.lua, of a user":       {"record lock queue mark", "token lease size began place idle now"},
}

// ofUser is behind the file of a script where that is for the session of a user.
const ofUser = ", of a user"

type signature struct{ keys, args string }

// included are files that are no scripts by themselves.
var included = []string{"internal/lease/queue.lua", "internal/lease/set.lua", "internal/records/clock.lua", "internal/records/mark.lua", "internal/records/record.lua", "internal/records/times.lua", "internal/records/user.lua"}

var remarks = regexp.MustCompile(`--.*`)

// source reads a file of the project.
func source(tb testing.TB, file string) string {
	tb.Helper()
	text, err := os.ReadFile("../../" + file)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

var notOfUser = regexp.MustCompile(`(?m)^.* -- not of a user\n`)

// whole returns a script with what it includes, as newScript of package store puts it together.
func whole(tb testing.TB, script string) string {
	tb.Helper()
	file, user := strings.CutSuffix(script, ofUser)
	text := source(tb, file)
	for _, file := range included {
		text = strings.Replace(text, "-- include "+filepath.Base(file)+"\n", source(tb, file), 1)
	}
	if strings.Contains(text, "-- include") {
		tb.Fatalf("%s includes what this test does not know", file)
	}
	if user {
		text = strings.ReplaceAll(notOfUser.ReplaceAllString(text, ""), "-- of a user: ", "")
		const begin = "-- framed from here\n"
		first, rest, ok := strings.Cut(text, begin)
		if text = first + begin + source(tb, "internal/records/user.lua") + rest; !ok {
			text = source(tb, "internal/records/user.lua") + first
		}
	}
	return text
}

// framed returns a script of the project as its client runs it. What wraps it is read
// from the source, so that it is never another.
func framed(tb testing.TB, script string) string {
	tb.Helper()
	text := whole(tb, script)
	const begin = `"local function script()\n" + rest + ` + "`"
	_, frame, ok := strings.Cut(source(tb, "internal/scripting/sequence.go"), begin)
	end, _, ok2 := strings.Cut(frame, "`")
	if !ok || !ok2 {
		tb.Fatal("internal/scripting/sequence.go wraps scripts in another way than this test knows")
	}
	first, rest, ok := strings.Cut(text, "-- framed from here\n")
	if !ok {
		first, rest = "", text
	}
	return first + "local function script()\n" + rest + end
}

// asking are scripts that only ask for the mark where the session is that of a user.
var asking = []string{"internal/records/extend.lua", "internal/records/load.lua"}

// A script that is new, or has got an argument more, would not be compared well.
func TestTheSignaturesAreThoseOfTheScripts(t *testing.T) {
	var files []string
	for _, folder := range []string{"internal/lease/", "locker/", "internal/records/"} {
		found, err := filepath.Glob("../../" + folder + "*.lua")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			file := folder + filepath.Base(path)
			if !slices.Contains(included, file) {
				files = append(files, file)
			}
			if strings.Contains(source(t, file), "-- of a user: ") || slices.Contains(asking, file) {
				files = append(files, file+ofUser)
			}
		}
	}
	slices.Sort(files)
	if known := slices.Sorted(maps.Keys(signatures)); !slices.Equal(files, known) {
		t.Errorf("scripts %q, signatures %q", files, known)
	}
	for file, signature := range signatures {
		text := remarks.ReplaceAllString(whole(t, file), "")
		args := strings.Fields(signature.args)
		n := len(slices.DeleteFunc(args, func(kind string) bool { return strings.HasSuffix(kind, "*") }))
		if n > 0 && !strings.Contains(text, "ARGV["+strconv.Itoa(n)+"]") || strings.Contains(text, "ARGV["+strconv.Itoa(n+2)+"]") {
			t.Errorf("%s does not use %d arguments and the number of the call", file, n)
		}
	}
}

// Small scripts whose replies are to be those of a real Redis. Each gets the keys k and
// l and the arguments 10, "text" and "".
var smallScripts = map[string]string{
	"numbers become integers": `
		return 3.99
		return 2^63
		return 0/0`,
	"values become replies": `
		return nil
		return false
		return {}
		return {1, {2, {3, false, true, 'x'}}}
		return {ok='two\r\nlines'}
		return {err='two\nlines\n'}
		return {err='zero\0byte'}
		local x`,
	"replies become values": `
		return type(redis.call('GET', 'nothing'))
		return redis.call('MGET', KEYS[1], 'nothing', KEYS[1])
		return redis.pcall('GET').err
		return redis.pcall('LPUSH', KEYS[1], 'x')`,
	"arguments become texts": `
		redis.call('SET', KEYS[1], 0.1) return redis.call('GET', KEYS[1])
		redis.call('SET', KEYS[1], 2^53 + 1) return redis.call('GET', KEYS[1])
		redis.call('SET', KEYS[1], 1/0) return redis.call('GET', KEYS[1])
		return redis.call('SET', KEYS[1], {})
		return redis.call('SET', KEYS[1], 'v', 'PX', 0.5)`,
	"errors of commands": `
		return redis.call()
		return redis.call('NOSUCH')
		return redis.call('SCRIPT', 'FLUSH')
		return redis.call('SUBSCRIBE', 'x')
		redis.call('SET', KEYS[1], 'v')  redis.call('LPUSH', KEYS[1], 'x')
		local r = redis.pcall('GET') r.err = 'MINE it is' return r`,
	"errors of scripts": `
		error('text')
		local function f() return redis.call('GET') end return f()
		return nothing.there
		something = 1
		return (`,
	"helpers": `
		return redis.sha1hex('abc')
		return redis.sha1hex()
		return redis.error_reply('MY two')
		return {KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4]}
		return {#KEYS, #ARGV, type(ARGV[1])}`,
	"texts and numbers": `
		return {string.find('a.b', '.', 1, true)}
		return {string.match('{"v":2,"s":"AB1","gone":17}', '^{"v":2,"s":"%w+","(%a+)":(%d+)[,}]')}
		return string.sub('hello', 2, -2)
		return string.format('%d %s %5.2f %x %q', 3, 'x', 2.5, 255, 'q')
		return string.format('%.0f', 1700000000000.5)
		return {string.gsub('hello world', 'o', '0')}
		local t = {} for w in string.gmatch('one two', '%a+') do t[#t+1] = w end return t
		return ARGV[1] * 2
		return -7 % 3`,
}

func TestSmallScriptsDoTheSameOnARealRedis(t *testing.T) {
	p := newPair(t)
	for name, scripts := range smallScripts {
		t.Run(name, func(t *testing.T) {
			q := *p
			q.TB = t
			l := q.connect()
			for script := range strings.SplitSeq(strings.TrimSpace(scripts), "\n") {
				l.do("DEL", "k")
				if _, same := l.try("EVAL", strings.TrimSpace(script), "2", "k", "l", "10", "text", ""); !same {
					t.Error(q.history[len(q.history)-1])
				}
			}
		})
	}
}

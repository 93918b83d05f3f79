package fakeredis_test

import (
	"cmp"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/lua"
)

// signatures has the kinds of the keys and arguments of the project's scripts. The first argument of each
// script is the number of the call, which is left out here.
var signatures = map[string]signature{
	"internal/lease/extend.lua":       {"lock", "token lease"},
	"internal/lease/pass.lua":         {"lock queue", "token token lease"},
	"internal/lease/quit.lua":         {"lock queue", "place"},
	"internal/lease/release.lua":      {"lock queue", "token delay"},
	"internal/lease/take.lua":         {"lock queue", "token lease place"},
	"locker/timestamp.lua":            {"time note", "mode token delay moment"},
	"internal/records/commit.lua":     {"record lock queue staged?", "token base ttl text/none mark? next? lease? flag? flag?"},
	"internal/records/create.lua":     {"record", "sent within stamp text lease"},
	"internal/records/drop.lua":       {"record", "stamp"},
	"internal/records/end.lua":        {"record", "text lease"},
	"internal/records/extend.lua":     {"record lock queue", "token lease base"},
	"internal/records/load.lua":       {"record", "began idle size delay delay now flag?"},
	"internal/records/optimistic.lua": {"record lock queue staged?", "base text lease flag?"},
	"internal/records/take.lua":       {"record lock queue", "token lease size began place idle now flag?"},
	"internal/records/endall.lua":     {"mark list", "sent within name member*"},
	"internal/records/user_lost.lua":  {"mark list", ""},
	"internal/records/login.lua":      {"record lock queue mark list", "sent within sent stamp text lease lease old most refuse epoch instead flag?"},
	"internal/records/claim.lua":      {"record lock queue mark list record", ""},
}

// ofUser follows the file of a script that is called for the session of a user.
const ofUser = ", of a user"

// The same scripts also run for users' sessions, with other keys.
func init() {
	for _, name := range []string{"claim", "commit", "drop", "end", "extend", "load", "optimistic", "take"} {
		file := "internal/records/" + name + ".lua"
		keys := map[string]string{
			"commit": "record lock queue mark staged/list?", "optimistic": "record lock queue mark staged?",
			"claim": "record lock queue mark list record", "drop": "record lock queue mark list", "end": "record lock queue mark list",
		}[name]
		signatures[file+ofUser] = signature{cmp.Or(keys, "record lock queue mark"), signatures[file].args}
	}
}

type signature struct{ keys, args string }

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

// framed returns a script of the project as Redis runs it.
func framed(tb testing.TB, script string) string {
	tb.Helper()
	file := strings.TrimSuffix(script, ofUser)
	return source(tb, path.Join(path.Dir(file), "golden", path.Base(file)))
}

// Each script and each argument has its signature: otherwise the comparison would miss it.
func TestTheSignaturesAreThoseOfTheScripts(t *testing.T) {
	var files []string
	for _, folder := range lua.Dirs {
		found, err := filepath.Glob("../../" + folder + "/*.lua")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range found {
			file := folder + "/" + filepath.Base(at)
			files = append(files, file)
			if strings.Contains(source(t, file), `{{template "user"}}`) {
				files = append(files, file+ofUser)
			}
		}
	}
	slices.Sort(files)
	if known := slices.Sorted(maps.Keys(signatures)); !slices.Equal(files, known) {
		t.Errorf("scripts %q, signatures %q", files, known)
	}
	for file, signature := range signatures {
		text := remarks.ReplaceAllString(framed(t, file), "")
		args := strings.Fields(signature.args)
		n := len(slices.DeleteFunc(args, func(kind string) bool { return strings.HasSuffix(kind, "*") }))
		if !strings.Contains(text, "ARGV["+strconv.Itoa(n+1)+"]") || strings.Contains(text, "ARGV["+strconv.Itoa(n+2)+"]") {
			t.Errorf("%s does not use the number of the call and %d arguments", file, n)
		}
	}
}

// smallScripts are compared with a real Redis. Each gets the keys k and l, and the arguments 10, "text" and "".
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

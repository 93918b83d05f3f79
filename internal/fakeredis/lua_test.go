package fakeredis_test

import (
	"strings"
	"testing"
)

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

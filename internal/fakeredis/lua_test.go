package fakeredis_test

import (
	"maps"
	"strings"
	"testing"
)

// Small scripts whose replies are to be those of a real Redis. Each gets the keys k and
// l and the arguments 10, "text" and "".
var replyScripts = map[string]string{
	"numbers become integers": `
		return 3.99
		return -3.99
		return 1e15
		return 2^53
		return 2^63
		return -2^63
		return 1e300
		return 0/0
		return 1/0
		return '3.99'
		return {1.5, -0.5, 2^62}`,
	"values become replies": `
		return nil
		return true
		return false
		return ''
		return {}
		return {1, 2, nil, 4}
		return {1, {2, {3, false, true, 'x'}}}
		return {ok='fine'}
		return {ok='two\r\nlines'}
		return {err='BAD thing'}
		return {err='bad'}
		return {err='two\nlines\n'}
		return {err='zero\0byte'}
		return {err=5, 7}
		return {ok=5, 7}
		return {1, {ok='in'}, {err='ERR out'}}
		return {a=1, 2}
		return function() end
		return 1, 2
		return
		local x`,
	"replies become values": `
		return redis.call('SET', KEYS[1], 'v')
		return type(redis.call('SET', KEYS[1], 'v'))
		return redis.call('SET', KEYS[1], 'v').ok
		return type(redis.call('GET', 'nothing'))
		return tostring(redis.call('GET', 'nothing'))
		return type(redis.call('DEL', 'nothing'))
		return #redis.call('MGET', KEYS[1], 'nothing', 'nothing')
		return redis.call('MGET', KEYS[1], 'nothing', KEYS[1])
		return redis.call('PING')
		return redis.call('PTTL', 'nothing')
		return #redis.call('TIME')
		return redis.pcall('GET').err
		return redis.pcall('LPUSH', KEYS[1], 'x')
		return {redis.pcall('LPUSH', KEYS[1], 'x')}`,
	"arguments become texts": `
		redis.call('SET', KEYS[1], 10) return redis.call('GET', KEYS[1])
		redis.call('SET', KEYS[1], 1.5) return redis.call('GET', KEYS[1])
		redis.call('SET', KEYS[1], 0.1) return redis.call('GET', KEYS[1])
		redis.call('SET', KEYS[1], 1e15) return redis.call('GET', KEYS[1])
		redis.call('SET', KEYS[1], 2^53 + 1) return redis.call('GET', KEYS[1])
		redis.call('SET', KEYS[1], 1e16) return redis.call('GET', KEYS[1])
		redis.call('SET', KEYS[1], 123456789012345678) return redis.call('GET', KEYS[1])
		redis.call('SET', KEYS[1], 1e17) return redis.call('GET', KEYS[1])
		redis.call('SET', KEYS[1], 1.5e300) return redis.call('GET', KEYS[1])
		redis.call('SET', KEYS[1], 1e-7) return redis.call('GET', KEYS[1])
		redis.call('SET', KEYS[1], 1/0) return redis.call('GET', KEYS[1])
		redis.call('SET', KEYS[1], -1/0) return redis.call('GET', KEYS[1])
		return redis.call('SET', KEYS[1], true)
		return redis.call('SET', KEYS[1], {})
		return redis.call('SET', KEYS[1], nil)
		return redis.call('SET', KEYS[1], 'v', 'PX', 60000)
		return redis.call('SET', KEYS[1], 'v', 'PX', 0.5)`,
	"errors of commands": `
		return redis.call()
		return redis.pcall()
		return redis.call('NOSUCH')
		return redis.pcall('NOSUCH')
		return redis.call('GET')
		return redis.call('SCRIPT', 'FLUSH')
		return redis.call('SCRIPT', 'NOSUCH')
		return redis.call('SCRIPT')
		return redis.call('EVAL', 'return 1', 0)
		return redis.call('SUBSCRIBE', 'x')
		return redis.call('PUBSUB', 'NUMSUB', 'x')
		return redis.call('ROLE')
		redis.call('SET', KEYS[1], 'v')  redis.call('LPUSH', KEYS[1], 'x')
		local ok, e = pcall(redis.call, 'GET') return {tostring(ok), type(e), e}
		local ok, e = pcall(function() return redis.call('GET') end) return {tostring(ok), e}
		local ok, a, b = pcall(function() return 1, 2 end) return {tostring(ok), a, b}
		return {pcall(function() end)}
		local r = redis.pcall('GET') r.err = 'MINE it is' return r
		error(redis.pcall('GET'))
		local t = {} t[1] = redis.pcall('GET') return t`,
	"errors of scripts": `
		error('text')
		error('text', 0)
		error({err='MY table'})
		error({err='MY table\nof two lines'})
		local function f() error('deep') end f()
		local function f() redis.call('GET') end f()
		local function f() return redis.call('GET') end return f()
		return nothing.there
		return nothing
		something = 1
		local x; x.y = 1
		local x; return x.y
		local x = {} + 1
		return 'a' < 1
		return #nil
		assert(false, 'told')
		assert(nil)
		return (
		return 'unfinished
		x = = 1`,
	"helpers": `
		return redis.fakeredis.SHA1Hex('')
		return redis.fakeredis.SHA1Hex('abc')
		return redis.fakeredis.SHA1Hex(12)
		return redis.fakeredis.SHA1Hex()
		return redis.fakeredis.SHA1Hex('a', 'b')
		return redis.error_reply('one')
		return redis.error_reply('-one')
		return redis.error_reply('MY two')
		return redis.error_reply('-MY two')
		return redis.error_reply('MY two words\r\n')
		return redis.error_reply()
		return redis.error_reply(5)
		return redis.status_reply('fine')
		return redis.status_reply()
		return {KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4]}
		return {#KEYS, #ARGV, type(ARGV[1])}`,
}

func smallScripts() map[string]string {
	all := maps.Clone(replyScripts)
	maps.Copy(all, languageScripts)
	return all
}

func TestSmallScriptsDoTheSameOnARealRedis(t *testing.T) {
	p := newPair(t)
	for name, scripts := range smallScripts() {
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

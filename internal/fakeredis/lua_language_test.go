package fakeredis_test

// More small scripts, about Lua itself.
var languageScripts = map[string]string{
	"texts": `
		return {string.find('hello', 'l')}
		return {string.find('hello', 'l', 4)}
		return {string.find('hello', 'l', -2)}
		return {string.find('hello', 'x')}
		return {string.find('a.b', '.', 1, true)}
		return {string.find('a.b', '.', 2)}
		return {string.find('', '')}
		return {string.find('abc', '', 10)}
		return {string.find('abc', '^b')}
		return {string.find('abc', '(b)()')}
		return {string.match('key=value', '^(%w+)=(%w*)$')}
		return {string.match('{"v":2,"s":"AB1","gone":17}', '^{"v":2,"s":"%w+","(%a+)":(%d+)[,}]')}
		return {string.match('  x  ', '^%s*(.-)%s*$')}
		return {string.match('a-b-c', '^(.*)-')}
		return {string.match('a-b-c', '^(.-)-')}
		return {string.match('f(a(b)c)d', '%b()')}
		return {string.match('THE (quick) fox', '%f[%a]%a+', 5)}
		return {string.match('abab', '(ab)%1')}
		return {string.match('x[]]y', '[]]+')}
		return {string.match('x^-y', '[%^%-]+')}
		return {string.match('a-z', '[a%-z]+')}
		return {string.match('0x1F', '%x+$')}
		return {string.match('abc', '[^a]+')}
		return {string.match('abc', 'b?c?$')}
		return {string.match('a\0b', '%z')}
		return {string.match('latchkey:wake:X/12', '^(.*)/')}
		return string.match('x', '(')
		return string.match('x', '%')
		return string.match('x', '[a')
		return string.match('x', ')')
		return string.match('x', '%1')
		return string.sub('hello', 2, -2)
		return string.sub('hello', -3)
		return string.sub('hello', 4, 100)
		return string.sub('hello', 0)
		return string.rep('ab', 3)
		return string.lower('ABC') .. string.upper('abc') .. string.reverse('abc')
		return {string.byte('abc', 1, 3)}
		return string.char(65, 66)
		return string.len('a\0b')
		return string.format('%d %s %5.2f %x %q', 3, 'x', 2.5, 255, 'q')
		return string.format('%.0f', 1700000000000.5)
		return string.format('%.0f', 2.5)
		return {string.gsub('hello world', 'o', '0')}
		return {string.gsub('abc', '%w', '%0%0')}
		local t = {} for w in string.gmatch('one two', '%a+') do t[#t+1] = w end return t
		return ('x'):rep(3)
		return 'a' .. 1 .. 2.5
		return #'abc' + 1`,
	"numbers": `
		return tostring(1e13)
		return tostring(0.1)
		return tostring(-3)
		return tonumber('12') + 1
		return tonumber('1e3')
		return tonumber(' 7 ')
		return tonumber('0x10')
		return tonumber('-0x10')
		return tonumber('010')
		return tonumber('1.5') * 2
		return tostring(tonumber(''))
		return tostring(tonumber('x'))
		return tostring(tonumber('1_0'))
		return tostring(tonumber('--1'))
		return tostring(tonumber('0x'))
		return tonumber('ff', 16)
		return tonumber('12', 3)
		return tostring(tonumber('z', 16))
		return '10' + 5
		return ARGV[1] * 2
		return ARGV[2] * 2
		return 7 % 3
		return -7 % 3
		return math.floor(-1.5)
		return math.min(3, 1, 2)
		return math.max(3, 1, 2)
		return math.huge
		return 10 == '10' and 1 or 2
		return tonumber(nil)
		return tostring(1 < 2)`,
	"the language": `
		local t = {3, 1, 2} table.sort(t) return t
		local t = {1, 2} table.insert(t, 3) table.remove(t, 1) return t
		return table.concat({1, 2, 3}, ',')
		return {unpack({1, 2, 3}, 2)}
		return {select(2, 'a', 'b', 'c')}
		return select('#', 1, nil)
		local n = 0 for i, v in ipairs({1, 2, nil, 4}) do n = n + v end return n
		local n = 0 for k, v in pairs({1, 2, x=3}) do n = n + v end return n
		local n = 0 for i = 10, 1, -3 do n = n + i end return n
		local n = 0 while true do n = n + 1 if n == 3 then break end end return n
		local n = 0 repeat n = n + 1 until n > 2 return n
		local f = function(...) return select('#', ...) end return f(1, nil, 3)
		local t = setmetatable({}, {__index = function(_, k) return k end}) return t.x
		return rawequal('a', 'a') and 1 or 0
		return type(type)
		local co = coroutine.wrap(function() coroutine.yield(redis.call('PING').ok) end) return co()
		return tostring(print)
		return tostring(os)
		return tostring(require)
		return tostring(io)`,
}

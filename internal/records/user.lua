-- What scripts on a session of a user begin with; see user.go. They get one more key, the last: the
-- user's mark, which says which sessions are alive. One that is not was ended, and whichever script
-- meets it first buries it: all that follows then finds a tombstone, as after a logout. (Since when
-- it is gone is not known.)
local mark = redis.call('GET', KEYS[#KEYS]) or ''
local tombstone = '{"v":2,"s":"endedByTheirUser","gone":0}'
local member = string.sub(KEYS[1], -11)
local head = redis.pcall('GETRANGE', KEYS[1], '0', '70')
local epoch = type(head) == 'string' and string.match(head, '^{"v":2,"s":"%w+","c":%d+,"g":(%d+)')
if epoch and string.sub(mark, 1, 15) ~= epoch -- rule: a session of another epoch was ended, unless the mark names it
  and not string.find(mark, ' ' .. member, 1, true) then
  redis.call('PEXPIRE', KEYS[1], '1', 'GT') -- a session can be ended, however full Redis is
  redis.call('SET', KEYS[1], tombstone, 'PX', 60000)
end


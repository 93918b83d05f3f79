-- The part of scripts on a session that may be a user's: see user.go. The script sets local user before;
-- then KEYS[4] is the mark, which says which of the user's sessions are alive.
--
-- A session that was ended is buried: the code after this part finds a tombstone, as after a logout. (The
-- time of the end is not known.)

local tombstone = '{"v":2,"s":"endedByTheirUser","gone":0}'
local mark = user and redis.call('GET', KEYS[4]) or ''
if user then
  local head = redis.pcall('GETRANGE', KEYS[1], '0', '70')
  local epoch = type(head) == 'string' and string.match(head, '^{"v":2,"s":"%w+","c":%d+,"g":(%d+)')
  if epoch and string.sub(mark, 1, 15) ~= epoch -- rule: a session of another epoch was ended, unless the mark names it
    and not string.find(mark, ' ' .. string.sub(KEYS[1], -11), 1, true) then
    redis.call('PEXPIRE', KEYS[1], '1', 'GT') -- a session can be ended even if Redis is full
    redis.call('SET', KEYS[1], tombstone, 'PX', 60000)
  end
end

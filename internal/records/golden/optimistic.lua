local function script()
-- Replaces the record that was loaded without the lock, if it is unchanged, the lock is free and the
-- queue is empty.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue   KEYS[4] mark, of a user's session
-- the last key: the staged record, if the record is staged; see staged.go
-- ARGV[1] number of the call, negative for a repetition
-- ARGV[2] revision of the record that was loaded
-- ARGV[3] record, or the beginning of a staged one   ARGV[4] its time to live in ms
-- ARGV[5] '1': it is staged; it may be missing
-- Returns 1: written; 0: refused, and nothing was changed; 3: the same, but an earlier try of this call
-- may have been executed, or may be executed later.
local staged = ARGV[5] == '1' and KEYS[#KEYS]
local user = #KEYS > (staged and 4 or 3)
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


-- absent reports whether a key of any type is missing. If Redis does not permit the queue, there is none.
local function absent(key)
  local left = redis.pcall('PTTL', key)
  return left == -2 or type(left) == 'table' and key == KEYS[3]
end

local found = redis.pcall('GETRANGE', KEYS[1], '12', '27')
if found == ARGV[2] -- rule: without the lock only what was read is replaced
  and absent(KEYS[2]) -- rule: without the lock no held session is written
  and absent(KEYS[3]) then -- rule: without the lock no session with waiters is written
  if staged then
    redis.call('RENAME', staged, KEYS[1])
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
  else
    redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
  end
  return 1
end
if staged then
  redis.pcall('DEL', staged) -- it is not needed
end
if found == string.sub(ARGV[3], 13, 28) then -- rule: a repeated write without the lock knows its own record
  return 1
end
return tonumber(ARGV[1]) < 0 and 3 or 0 -- rule: a repeated write without the lock does not say that nothing was stored

end

-- The frame. A reply carries the number of its call, which is ARGV[1] of each script: see package
-- scripting.
local reply, call = script(), tonumber(ARGV[1])
if type(reply) == 'number' then
  return 4 * call + reply
elseif not reply.err then
  reply[#reply + 1] = call
end
return reply

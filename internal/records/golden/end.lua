local function script()
-- Ends a session, even if a request holds it: requests under way find a tombstone.
-- KEYS[1] record; and of a user's session: KEYS[2] lock   KEYS[3] queue   KEYS[4] mark   KEYS[5] list
-- ARGV[1] number of the call   ARGV[2] tombstone   ARGV[3] its time to live in ms
-- Returns 1: ended; 0: there is none; 2: it had ended before; 3: it is not a session, and was left as it
-- is.
local user = #KEYS > 3
-- The part of scripts that write small values that do not stay: a lock, a queue, a tombstone.

-- set is redis.call('SET', ...), but it also works if Redis is full: Redis gives memory to any script that
-- has called a write command. PEXPIRE is a write command, and here it changes nothing: no existing key
-- expires sooner than in a millisecond. A saved record must not be written by set, nor after it.
local function set(...)
  local reply = redis.pcall('SET', ...)
  if reply and reply.err then
    redis.call('PEXPIRE', KEYS[1], '1', 'GT')
    reply = redis.call('SET', ...)
  end
  return reply
end

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

local head = redis.pcall('GETRANGE', KEYS[1], '0', '36')
if type(head) == 'table' then
  return string.find(head.err, 'WRONGTYPE', 1, true) and 3 or head
elseif head == '' then
  -- A replica that has not received the record must not deny it: it refuses this.
  redis.call('DEL', KEYS[1])
  return 0
end
local revision, what = string.match(head, '^{"v":2,"s":"(%w+)","(%a+)":') -- rule: a record is of version 2
if what == 'gone' then
  return revision == string.sub(ARGV[2], 13, 28) and 1 or 2
elseif what ~= 'c' then -- rule: only a session is ended
  return 3
end
set(KEYS[1], ARGV[2], 'PX', ARGV[3])
if user then
  redis.call('ZREM', KEYS[5], string.sub(KEYS[1], -11)) -- rule: a session that is ended leaves the list
end
return 1

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

local function script()
-- Notes that somebody has come back with a session of a user, and ends those that give way to it: see
-- unclaimed.go.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue   KEYS[4] mark   KEYS[5] list
-- KEYS[6] and so on: the records of the sessions that gave way to it when the claimer read the mark. There are no
-- others: what gives way to a session does so since the session began. But some may have ended since, or been claimed.
-- ARGV[1] number of the call
-- Returns 0: the session has ended; or {1} and the sessions that have ended now.
local user = true
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

-- The part of scripts on the sessions of a user that nobody has come back with: see unclaimed.go. The mark
-- has an entry for each, the oldest first: a space, ~, the session, >, and the newer session that it gives way
-- to, or dots.

-- entries returns the unclaimed sessions of a mark, and what each gives way to.
local function entries(mark)
  local order, by = {}, {}
  for id, newer in string.gmatch(mark, ' ~([^ >]+)>([^ ,]+)') do
    order[#order + 1], by[id] = id, newer
  end
  return order, by
end

local head = redis.pcall('GETRANGE', KEYS[1], '28', '36')
if head == '' or head == '","gone":' then
  return 0
end
local own = string.sub(KEYS[1], -11)
local order, by = entries(mark)
if not by[own] then -- rule: a session is claimed once
  return {1}
end
local leaves = {[own] = true} -- rule: its session, and what is below that, leave the mark
for i = #order, 1, -1 do -- the newest first: what an entry names is newer
  leaves[order[i]] = leaves[order[i]] or leaves[by[order[i]]]
end
local result = {1}
for i = 6, #KEYS do
  local old = string.sub(KEYS[i], -11)
  if leaves[old] then -- rule: a claim ends only what is still below its session
    -- A session that has ended otherwise is not on the list, and keeps its tombstone. An expired one has no record.
    if redis.call('ZSCORE', KEYS[5], old) and redis.call('PTTL', KEYS[i]) ~= -2 then -- rule: a claim names what it has ended
      set(KEYS[i], tombstone, 'PX', 60000) -- rule: a claim ends what is below its session
      result[#result + 1] = old
    end
    -- The list comes behind the record, and the mark comes last. So a claim that Redis breaks off, since a right is missing,
    -- can be done again.
    redis.call('ZREM', KEYS[5], old)
  end
end
local function without(id)
  return leaves[id] and ''
end
set(KEYS[4], string.gsub(mark, ' ~([^ >]+)>[^ ,]+', without), 'KEEPTTL')
return result

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

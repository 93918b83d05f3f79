local function script()
-- Notes that somebody has come back with a session of a user, and ends those that it replaces: see
-- unclaimed.go.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue   KEYS[4] mark   KEYS[5] list
-- KEYS[6] and so on: the records of the sessions that it replaces, the newest first
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
-- has an entry for each, the oldest first: a space, ~, the session, >, and the session that it replaces, or
-- dots.

local nothing = '...........'

-- entries returns the unclaimed sessions of a mark, and what each replaces.
local function entries(mark)
  local order, replaced = {}, {}
  for id, old in string.gmatch(mark, ' ~([^ >]+)>([^ ,]+)') do
    order[#order + 1], replaced[id] = id, old
  end
  return order, replaced
end

-- withEntries returns a mark with these entries in place of its own. A session that was claimed has no entry
-- any more, so nothing replaces it.
local function withEntries(mark, order, replaced)
  local text = string.gsub(string.match(mark, '^[^,]*'), ' ~[^ >]+>[^ ]+', '')
  for _, id in ipairs(order) do
    local old = replaced[id]
    if old and not replaced[old] then -- rule: a session that was claimed is not replaced
      old = nothing
    end
    if old then
      text = text .. ' ~' .. id .. '>' .. old
    end
  end
  return text .. (string.match(mark, ',.*') or '')
end

local head = redis.pcall('GETRANGE', KEYS[1], '28', '36')
if head == '' or head == '","gone":' then
  return 0
end
local own = string.sub(KEYS[1], -11)
local order, replaced = entries(mark)
local old, result = replaced[own], {1}
if not old then -- rule: a session is claimed once
  return result
end
replaced[own] = nil
for i = 6, #KEYS do
  if old == string.sub(KEYS[i], -11) then -- others may have left the mark since it was read
    -- A session that has ended otherwise is not on the list, and keeps its tombstone. An expired one has no record.
    if redis.call('ZREM', KEYS[5], old) == 1 and redis.call('PTTL', KEYS[i]) ~= -2 then -- rule: a claim names what it has ended
      set(KEYS[i], tombstone, 'PX', 60000) -- rule: a claim ends the sessions that it replaces
      result[#result + 1] = old
    end
    old, replaced[old] = replaced[old], nil
  end
end
set(KEYS[4], withEntries(mark, order, replaced), 'KEEPTTL')
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

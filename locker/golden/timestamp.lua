local function script()
-- The lock whose value is the moment at which it expires, in Unix ms.
-- KEYS[1] lock   KEYS[2] note: who set the lock, and to what
-- ARGV[1] number of the call   ARGV[2] take, extend or release   ARGV[3] token   ARGV[4] how long the
-- lock stays locked from now on, in ms; 0 in a release: it is deleted
-- ARGV[5] now, Unix ms; '': ask Redis
-- Returns {1}: done; {0, token, time left in ms}: another token has the lock, '' if that is unknown;
-- {-1}: it has expired; {-2}: the value is not a time.
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

local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  return string.find(value.err, 'WRONGTYPE', 1, true) and {-2} or value
end
-- From the year 2001 to 2286 ms have 13 digits; PHP may add a fraction. Any other number is a foreign
-- value. It must not be taken for a lock that expired long ago.
local expiry = value and string.match(value, '^%d+%.?%d*$') and tonumber(value)
if value and not (expiry and expiry >= 1e12 and expiry < 1e13) then
  return {-2}
end
local now = tonumber(ARGV[5])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The note is "<value> <f or s> <token>". It belongs to the lock only while the lock still has that
-- value. The exception is a lock that was taken when it was stale (s), not free (f): other clients that
-- saw it stale, too, and take it by GET and GETSET, change the winner's value, although they have lost.
local noted, way, token
if value then
  noted, way, token = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) ([fs]) (.*)$')
end
local unchanged = noted and noted == value
-- The lock has expired only if its time is in the past: now may be truncated by a part of a ms.
local valid = noted and (unchanged or way == 's') and tonumber(noted) >= now
local mine = valid and token == ARGV[3]

-- If the lock is mine already, this is a repetition: the reply to a take or release was lost.
if not mine then
  if ARGV[2] == 'take' then
    if value and expiry >= now then
      return {0, valid and token or '', math.floor(expiry - now) + 1}
    end
    way = value and 's' or 'f'
  elseif not value or unchanged and token == ARGV[3] then
    return {-1}
  else
    return {0, '', 0}
  end
end

if ARGV[4] == '0' then
  redis.call('DEL', KEYS[1], KEYS[2])
else
  -- A stale lock stays for a while: if it vanished at once, clients between GET and GETSET would not know
  -- which of them has won.
  local ends = now + ARGV[4]
  -- A copy, or a renewal that comes late, must not shorten what Extend or UnlockAfter has set since.
  if mine and ARGV[2] ~= 'release' then -- rule: an extended time lasts longer
    ends = math.max(ends, tonumber(noted))
  end
  -- The largest value that is a time is in the year 2286.
  local new, keep = string.format('%.0f', math.min(ends, 9999999999999)), string.format('%.0f', 2 * (ends - now))
  set(KEYS[1], new, 'PX', keep)
  set(KEYS[2], new .. ' ' .. way .. ' ' .. ARGV[3], 'PX', keep)
end
return {1}

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

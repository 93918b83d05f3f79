local function script()
-- The lock whose value is the moment it expires, in Unix ms.
-- KEYS[1] lock   KEYS[2] note: who set the lock, and to what
-- ARGV[1] number of the call   ARGV[2] take, extend or release   ARGV[3] token   ARGV[4] for how long from now
-- on the lock is to be shut, in ms; 0: not at all, for a release
-- ARGV[5] now, Unix ms; '': ask Redis
-- Returns {1}: done; {0, token, time left in ms}: another has the lock, whose
-- token may be ''; {-1}: it has run out; {-2}: the value is not a time.
-- The part of scripts that write what is small and does not stay: a lock, a queue, a tombstone.

-- set is redis.call('SET', ...), also where Redis is full. Redis refuses no memory to a script
-- that has called a command which writes, and PEXPIRE is one, although it changes nothing here:
-- no key that is there expires sooner than in a millisecond. A record that is saved must not be
-- written by set, nor after it.
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
-- From the year 2001 to 2286 ms have 13 digits; PHP may add a fraction. Any other
-- number is something else, which must not pass for a lock that ran out long ago.
local expiry = value and string.match(value, '^%d+%.?%d*$') and tonumber(value)
if value and not (expiry and expiry >= 1e12 and expiry < 1e13) then
  return {-2}
end
local now = tonumber(ARGV[5])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The note is "<value> <f or s> <token>". It speaks for the lock only while the
-- lock still has that value. A lock that was taken over when stale (s), not when
-- it was free (f), is the exception: others who saw it stale, too, and take it by
-- GET and GETSET, change the winner's value, though they have lost.
local noted, way, token
if value then
  noted, way, token = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) ([fs]) (.*)$')
end
local unchanged = noted and noted == value
-- Only what is in the past has run out: now may be cut by a part of a ms.
local valid = noted and (unchanged or way == 's') and tonumber(noted) >= now
local mine = valid and token == ARGV[3]

-- What is mine already may be repeated: the reply to a take or release was lost.
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
  -- A stale lock stays for a while: if it vanished at once, those who meet it
  -- between GET and GETSET would not know who has won.
  local new, keep = string.format('%.0f', now + ARGV[4]), 2 * ARGV[4]
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

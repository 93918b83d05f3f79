-- The lock whose value is the moment it expires, in Unix ms.
-- KEYS[1] lock   KEYS[2] note: who set the lock, and to what
-- ARGV[1] take, extend or release   ARGV[2] token   ARGV[3] time in ms: of the
-- lease, or to leave the lock shut at a release   ARGV[4] now, Unix ms; '': ask Redis
-- Returns {1}: done; {0, token, time left in ms}: another has the lock, whose
-- token may be ''; {-1}: it has run out; {-2}: the value is not a time.
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  if string.find(value.err, 'WRONGTYPE', 1, true) then
    return {-2}
  end
  return value
end
local expiry
if value then
  -- Ms have 13 digits until the year 2286. A number of any other length is
  -- something else, which must not pass for a lock that ran out long ago.
  expiry = tonumber(string.match(value, '^%d%d%d%d%d%d%d%d%d%d%d%d%d$') or string.match(value, '^%d%d%d%d%d%d%d%d%d%d%d%d%d%.%d+$') or '')
  if not expiry then
    return {-2}
  end
end
local now = tonumber(ARGV[4] ~= '' and ARGV[4] or '0')
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The note is "<value> <f or s> <token>". It speaks for the lock only while the
-- lock still has that value. A lock that was taken over when stale (s) is the
-- exception: others who saw it stale, too, and take it by GET and GETSET, change
-- the winner's value, though they have lost.
local note = value and redis.call('GET', KEYS[2])
local noted, way, token = '0', value and 's' or 'f', ''
if note then
  noted, way, token = string.match(note, '^(%d+) ([fs]) (.*)$')
end
local unchanged = noted == value
local mine = token == ARGV[2] and (unchanged or way == 's') and tonumber(noted) > now

local function set()
  local new, keep = string.format('%.0f', now + ARGV[3]), 2 * ARGV[3]
  -- A stale lock stays for a while: if it vanished at once, those who meet it
  -- between GET and GETSET would not know who has won.
  redis.call('SET', KEYS[1], new, 'PX', keep)
  redis.call('SET', KEYS[2], new .. ' ' .. way .. ' ' .. ARGV[2], 'PX', keep)
end

if ARGV[1] == 'take' then
  if value and expiry > now and not mine then
    return {0, unchanged and token or '', math.ceil(expiry - now)}
  end
  if not mine then
    way = value and 's' or 'f'
  end
  set()
  return {1}
end

if not mine then
  if not value or unchanged and token == ARGV[2] then
    return {-1}
  end
  return {0, '', 0}
end
if ARGV[1] == 'extend' then
  set()
elseif ARGV[3] == '0' then
  redis.call('DEL', KEYS[1], KEYS[2])
else
  redis.call('SET', KEYS[1], string.format('%.0f', now + ARGV[3]), 'PX', 2 * ARGV[3])
  redis.call('DEL', KEYS[2])
end
return {1}

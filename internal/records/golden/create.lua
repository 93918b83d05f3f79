local function script()
-- Writes the record of a new ID.
-- KEYS[1] record
-- ARGV[1] number of the call   ARGV[2] and ARGV[3] see clock.lua
-- ARGV[4] its revision   ARGV[5] record   ARGV[6] time to live in ms
-- Returns 1: written; 0: the ID is in use; {-1, Unix µs: now}: it has come too late.
-- The part of scripts that may take effect only for a while after they were sent. See clock.go.
-- ARGV[2] when it was sent, in Unix µs of Redis's clock as far as the process knows it; 0: unknown
-- ARGV[3] for how many µs after that it may take effect

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local late = math.abs(now - ARGV[2]) > tonumber(ARGV[3]) -- it has come too late, or with a wrong clock

-- The part of scripts that compare a record.

-- revisionOf returns the revision of a record, which each write chooses anew. For a value without a
-- revision it returns the SHA-1. So a revision has 16 characters or 40.
local function revisionOf(record)
  local revision = string.match(record, '^{"v":2,"s":"(%w+)"') -- rule: a record is of version 2
  return revision and #revision == 16 and revision or redis.sha1hex(record)
end

-- is reports whether the record at a key has that revision. 'foreign' is the revision of a value that is
-- not a string. A missing record has no revision. A revision of 16 characters is found without reading
-- the whole record, which may be large.
local function is(key, revision)
  local found = #revision == 16 and redis.pcall('GETRANGE', key, '12', '27') or redis.pcall('GET', key)
  if not found then
    return false
  elseif type(found) == 'string' then
    return #revision == 16 and found == revision or #revision == 40 and redis.sha1hex(found) == revision
  elseif not string.find(found.err, 'WRONGTYPE', 1, true) then
    redis.call('GETRANGE', key, '12', '27') -- fails in the same way, and ends the script
  end
  return revision == 'foreign'
end

-- changed says why a record does not have the expected revision: -3: another request has written it; -4:
-- another request has ended it, and there is a tombstone; -5: it is gone.
local function changed(key)
  local found = redis.pcall('GETRANGE', key, '28', '36')
  return found == '' and -5 or found == '","gone":' and -4 or -3
end

if late then -- rule: a record that comes late begins no session
  return {-1, now}
end
if redis.call('SET', KEYS[1], ARGV[5], 'NX', 'PX', ARGV[6]) then
  return 1
end
-- The record may be our own, from a try whose reply was lost.
return is(KEYS[1], ARGV[4]) and 1 or 0

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

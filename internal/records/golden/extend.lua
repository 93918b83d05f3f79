local function script()
-- Makes a held lock last for some time from now, and the record longer than the lock: a session that is
-- held does not expire.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue   KEYS[4] mark, of a user's session
-- ARGV[1] number of the call   ARGV[2] token    ARGV[3] time in ms   ARGV[4] revision of the record
-- Returns {1}: done; {0, token}: another token has the lock; {-1}: the lock is free; or a result of
-- changed: another request has written.
local user = #KEYS > 3
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

local holder = redis.call('GET', KEYS[2])
if holder ~= ARGV[2] then
  return {holder and 0 or -1, holder}
end
if not is(KEYS[1], ARGV[4]) then
  return {changed(KEYS[1])}
end
-- GT: a copy that comes late may find a later hold with the same token, whose lease is longer.
redis.call('PEXPIRE', KEYS[2], ARGV[3], 'GT') -- rule: a renewed lock lasts longer
redis.call('PEXPIRE', KEYS[1], ARGV[3] + 2000, 'GT') -- rule: a record outlasts its renewed lock
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

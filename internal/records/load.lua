-- Reads the record without the lock, and extends its idle timeout.
-- KEYS[1] record; and of a user's session: KEYS[2] lock   KEYS[3] queue   KEYS[4] mark
-- ARGV[1] number of the call   ARGV[2] Unix ms: sessions created then or before have reached their
-- lifetime; '' if there is none
-- ARGV[3] idle timeout in ms   ARGV[4] largest size in bytes
-- ARGV[5] time to live in ms before the plain read that this follows, 0 if the read did not extend it
-- ARGV[6] the least ms by which a session that is taken now is extended   ARGV[7] Unix ms: now
-- ARGV[8] '1': quiet, see times; with an idle timeout of 0 that is left as it is; it may be missing
-- Returns a state as in scripts.go, and the values that belong to it.
local user = #KEYS > 3
{{template "times"}}
{{template "user"}}
local record = redis.pcall('GET', KEYS[1])

-- restore undoes the extension by the plain read, but not below least.
local function restore(least)
  if ARGV[5] ~= '0' then
    redis.call('PEXPIRE', KEYS[1], math.max(ARGV[5], least), 'LT')
  end
end

if type(record) == 'table' then
  if string.find(record.err, 'WRONGTYPE', 1, true) then
    restore(0)
    return {5}
  end
  return record
end
if not record then
  -- A replica that has not received the record must not deny it: it refuses this.
  redis.call('DEL', KEYS[1])
  return {2}
end
local what, left, idle = times(record, ARGV[7], ARGV[2], ARGV[3], ARGV[8])
if what == 'gone' then
  local time = redis.call('TIME')
  -- The plain read extends a tombstone to the idle timeout. If that is longer than a minute, a tombstone that has no
  -- more than its minute was not extended: the session has ended since then.
  local has, ttl = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])
  if has > 60000 or has <= ttl and ttl <= 60000 then -- rule: a fresh tombstone is left alone
    local over = string.match(record, '"gone":(%d+)') + 60000 -- rule: a read leaves a tombstone its minute
    local rest = over - time[1] * 1000 - math.floor(time[2] / 1000)
    -- The time of the end is by the clock of the process that wrote it, which may be ahead.
    restore(math.min(60000, rest)) -- rule: a read leaves a tombstone no more than a minute
  end
  return {3, record, redis.call('PTTL', KEYS[1]), tonumber(time[1])}
end
-- The session may have been taken meanwhile, by a request that believed that it outlasts its holder.
restore(what == 'c' and left > 0 and math.max(idle, ARGV[6]) or 0)
if what == 'c' then
  if left <= 0 then
    return {2}
  end
  -- GT: a session that is held may have longer to live. Its lifetime was checked above.
  redis.call('PEXPIRE', KEYS[1], idle, 'GT') -- rule: reading a session extends its timeout
end
if #record > tonumber(ARGV[4]) then
  return {4, #record}
end
return {1, record, mark}

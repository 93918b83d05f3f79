-- Takes the lock and reads the record. If there is no session, it takes no lock.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue   KEYS[4] mark, of a user's session
-- ARGV[1] number of the call   ARGV[2] token    ARGV[3] lease in ms   ARGV[4] largest size in bytes
-- ARGV[5] Unix ms: sessions created then or before have reached their lifetime
-- ARGV[6] place in the queue, '' for none   ARGV[7] idle timeout in ms   ARGV[8] Unix ms: now
-- ARGV[9] '1': quiet, see times; it may be missing
-- Returns a state as in scripts.go, and the values that belong to it. After a record: 1 if other
-- processes wait; the mark, '' for a guest; and if quiet, for how many ms the record had been left.

-- The first try of a request consists of plain commands, see take.go. If something is unusual, this
-- script follows with the same token, which may have the lock by then.
local user = #KEYS > 3
{{template "queue"}}
{{template "record"}}
{{template "times"}}
{{template "user"}}

-- outlast makes the record outlast the lock, or the next try of a waiting process: a session for which a
-- request has come does not expire. Two seconds are longer than a process keeps its turn, and than a
-- waiting process waits before it asks again.
local function outlast(idle)
  redis.call('PEXPIRE', KEYS[1], math.max(ARGV[3] + 2000, idle), 'GT') -- rule: a record outlasts its lock
end

local record = redis.pcall('GET', KEYS[1])
local foreign = type(record) == 'table'
if foreign and not string.find(record.err, 'WRONGTYPE', 1, true) then
  return record
end
local token, place = ARGV[2], ARGV[6]
local what, left, idle
if record and not foreign then
  what, left, idle = times(record, ARGV[8], ARGV[5], ARGV[7], ARGV[9])
  if what == 'gone' then -- rule: an ended session is not taken
    if redis.pcall('GET', KEYS[2]) == token then -- rule: a take of an ended session leaves no lock
      free(KEYS[2], KEYS[3])
    end
    local time = redis.call('TIME')
    return {3, record, redis.call('PTTL', KEYS[1]), tonumber(time[1])}
  end
end

local absent = not record or left and left <= 0
if absent
  or not set(KEYS[2], token, 'NX', 'PX', ARGV[3]) then -- rule: a free session is taken for a lease
  local holder = redis.call('GET', KEYS[2])
  -- The token may be our own, from a try whose reply was lost.
  local ours = holder == token -- rule: a repeated take knows its token
    or place ~= '' and holder == place -- rule: a place takes the lock that it was given
  if absent and (ours or not holder) then
    -- A replica that has not received the record must not deny it: it refuses to write.
    redis.call('DEL', KEYS[2])
    if place ~= '' then
      quit(KEYS[3], place)
    end
    if ours then
      free(KEYS[2], KEYS[3])
    end
    return {2}
  elseif not ours then
    -- While another token has the lock, the result is never that there is no session: the request would
    -- begin another session beside the holder's.
    if idle and ARGV[9] == '1' then -- rule: a job that waits extends the session no further than its holder does
      redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[2]), 0) + 2000, 'GT')
    elseif idle then
      outlast(idle)
    end
    if place == '' then
      return {0, holder}
    end
    local held = redis.pcall('PTTL', KEYS[2])
    held = type(held) ~= 'number' and 0 or held == 0 and 1 or held -- 0 means less than a millisecond to PTTL
    return {0, holder, held, join(KEYS[3], place)}
  elseif holder == token then
    redis.call('PEXPIRE', KEYS[2], ARGV[3], 'GT') -- rule: a late take does not shorten the lock
  else
    set(KEYS[2], token, 'PX', ARGV[3]) -- rule: a lock that was given to a place is taken for a lease
  end
end
-- A late try may have put the place into the queue again.
if place ~= '' then -- rule: a place that has the lock is not in the queue
  quit(KEYS[3], place)
end
local before = ARGV[9] == '1' and redis.call('PTTL', KEYS[1]) or nil
if idle then
  outlast(idle)
end
if foreign then
  return {5}
end
if #record > tonumber(ARGV[4]) then -- rule: a record that is too large is refused
  return {4, #record, revisionOf(record)}
end
return {1, record, waiting(KEYS[3]) ~= '' and 1 or 0, mark, before}

-- Takes the lock and reads the record. What is not there takes no lock.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue
-- ARGV[1] token    ARGV[2] lease in ms   ARGV[3] largest size in bytes
-- ARGV[4] Unix ms: what was created then or before has reached its lifetime
-- ARGV[5] place in the queue, '' for none   ARGV[6] idle timeout in ms, see times   ARGV[7] Unix ms: now
-- Returns a state as in scripts.go, and what follows it. After a record that is 1
-- if other processes wait.

-- The first try of a request is made of plain commands, see take.go. It comes here with the same
-- token where something is odd, and may have the lock by then.
-- include queue.lua
-- include record.lua
-- include times.lua

-- outlast makes the record outlast the lock, or the next try of a process that waits for
-- it: a session that somebody has come for does not time out. Two seconds are longer
-- than the turn is kept for a process, and than one waits before it asks again.
local function outlast(idle)
  redis.call('PEXPIRE', KEYS[1], math.max(ARGV[2] + 2000, idle), 'GT') -- rule: a record outlasts its lock
end

local record = redis.pcall('GET', KEYS[1])
local foreign = type(record) == 'table'
if foreign and not string.find(record.err, 'WRONGTYPE', 1, true) then
  return record
end
local token, place = ARGV[1], ARGV[5]
local what, left, idle
if record and not foreign then
  what, left, idle = times(record, ARGV[7], ARGV[4], ARGV[6])
  if what == 'gone' then -- rule: an ended session is not taken
    if redis.pcall('GET', KEYS[2]) == token then -- rule: who takes an ended session leaves no lock
      free(KEYS[2], KEYS[3])
    end
    return {3}
  end
end

local absent = not record or left and left <= 0
if absent
  or not set(KEYS[2], token, 'NX', 'PX', ARGV[2]) then -- rule: a session is taken while nobody has it, for a lease
  local holder = redis.call('GET', KEYS[2])
  -- Our own may be from a try whose reply was lost.
  local ours = holder == token -- rule: a repeated take knows its token
    or place ~= '' and holder == place -- rule: a place takes the lock that it was given
  if absent and (ours or not holder) then
    -- A replica that has not heard of the record must not deny it: it refuses to write.
    redis.call('DEL', KEYS[2])
    if place ~= '' then
      quit(KEYS[3], place)
    end
    if ours then
      free(KEYS[2], KEYS[3])
    end
    return {2}
  elseif not ours then
    -- While somebody has the lock the answer is never that there is no session: a request
    -- that got it would begin another one next to the holder's.
    if idle then
      outlast(idle)
    end
    if place == '' then
      return {0, holder}
    end
    local left = redis.pcall('PTTL', KEYS[2])
    return {0, holder, type(left) == 'number' and left or 0, join(KEYS[3], place)}
  elseif holder == token then
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
  else
    set(KEYS[2], token, 'PX', ARGV[2]) -- rule: a lock that was given to a place is taken for a lease
  end
end
-- Also if a try that came late has put it there again.
if place ~= '' then -- rule: who has the lock stands in the queue no more
  quit(KEYS[3], place)
end
if idle then
  outlast(idle)
end
if foreign then
  return {5}
end
if #record > tonumber(ARGV[3]) then -- rule: a record that is too large is refused
  return {4, #record, name(record)}
end
-- of a user: return {1, record, waiting(KEYS[3]) ~= '' and 1 or 0, mark}
return {1, record, waiting(KEYS[3]) ~= '' and 1 or 0} -- not of a user


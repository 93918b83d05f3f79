-- Ends the holds of one process up to now: writes the record (or its tombstone), or
-- only puts its time-out off, if the token still has the lock. Then the next holder
-- has it.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue
-- ARGV[1] token    ARGV[2] token of the next holder, '' for none: the lock is freed
-- ARGV[3] its lease in ms
-- ARGV[4] time to live of the record in ms, '' to leave it as it is
-- ARGV[5] record, '' to leave it as it is   ARGV[6] its stamp
-- Returns {1, others}: done, and others is 1 if other processes wait; {0}: the lock
-- was lost, and nothing was changed.
local lock, to, record = KEYS[2], ARGV[2], ARGV[5]
local holder = redis.call('GET', lock)
if holder ~= ARGV[1] then
  -- A repetition finds the next holder's token, or its own stamp, unless another has
  -- written since.
  if to ~= '' and holder == to then
    return {1, waiting(KEYS[3]) ~= '' and 1 or 0}
  end
  if record ~= '' then
    local found = redis.pcall('GET', KEYS[1])
    local mine = '{"v":1,"stamp":"' .. ARGV[6] .. '"'
    if type(found) == 'string' and string.sub(found, 1, #mine) == mine then
      return {1, 0}
    end
  end
  return {0}
end
if record ~= '' then
  local done = redis.pcall('SET', KEYS[1], record, 'PX', ARGV[4])
  if done.err then
    -- Out of memory, say: the lock is of no more use to this process.
    free(lock, KEYS[3])
    return done
  end
elseif ARGV[4] ~= '' then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
if to == '' then
  free(lock, KEYS[3])
  return {1, 0}
end
redis.call('SET', lock, to, 'PX', ARGV[3])
return {1, waiting(KEYS[3]) ~= '' and 1 or 0}

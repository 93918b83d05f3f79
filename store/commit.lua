-- Ends the holds of one process up to now: writes the record (or its tombstone), or
-- only puts off its timeout, if the token has the lock and the record is the one that
-- they have built on. Then the next holder has the lock.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue
-- ARGV[1] token    ARGV[2] token of the next holder, '' for none: the lock is freed
-- ARGV[3] its lease in ms
-- ARGV[4] time to live of the record in ms, '' to leave it as it is
-- ARGV[5] base: the name of the record that was read or written last, see record.lua
-- ARGV[6] record, '' to leave it as it is
-- ARGV[7] number of the call, negative for a repetition
-- Returns 1: done; 2: done, and other processes wait; {0, why}: lost, and the record is as it
-- was; {3, why}: lost, but an earlier try of this call may have been done before that, or may
-- be done yet. why is {0, token}: another has the lock; {-1}: nobody has; or as changed says.
--
-- The lock keeps others out; what keeps a write from being lost is the base. A token
-- may get the lock a second time, by a take that comes late. By then others may have
-- written, and the record has another name. Since no name comes back, each write is
-- done once, on what its writer has read, or never.
local lock, to, ttl, record = KEYS[2], ARGV[2], ARGV[4], ARGV[6]

-- Nearly always all is as it should be, and nobody waits. This does what all below it
-- would do then, and makes none of the functions for that.
local small = record ~= '' and #record < 4096 -- as the old one is likely to be, too
local found = small and redis.pcall('MGET', lock, KEYS[3], KEYS[1]) or redis.pcall('MGET', lock, KEYS[3])
if found[1] == ARGV[1] and not found[2] and #ARGV[5] == 16
  and (small and string.sub(found[3] or '', 13, 28) or redis.pcall('GETRANGE', KEYS[1], '12', '27')) == ARGV[5] then
  if record == '' and ttl ~= '' then
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
  -- What Redis refuses, since it is full, is tried once more below, for the error.
  if record == '' or redis.pcall('SET', KEYS[1], record, 'PX', ttl).ok then
    if to == '' then
      redis.call('DEL', lock)
      return 1
    elseif redis.pcall('SET', lock, to, 'PX', ARGV[3]).ok then
      return 1
    end
  end
end

-- include queue.lua
-- include record.lua
local base, stamp = ARGV[5], string.sub(record, 13, 28)
local lost = tonumber(ARGV[7]) < 0 and 3 or 0

-- kept returns the result of what was done. While others wait the record must not time
-- out.
local function kept()
  if waiting(KEYS[3]) == '' then
    return 1
  end
  redis.call('PEXPIRE', KEYS[1], 2000, 'GT')
  return 2
end

local holder = redis.call('GET', lock)
if holder ~= ARGV[1] then
  -- A repetition finds the next holder's token or, unless another has written since,
  -- its own stamp. A holder that only read still succeeds if the record is unchanged.
  if to ~= '' and holder == to then
    return kept()
  end
  if record ~= '' and is(KEYS[1], stamp) or record .. to == '' and is(KEYS[1], base) then
    return 1
  end
  return {lost, holder and 0 or -1, holder}
end
if is(KEYS[1], base) then
  if record ~= '' then
    if string.sub(record, 29, 37) == '","gone":' then
      set(KEYS[1], record, 'PX', ttl) -- a session can be ended, however full Redis is
    else
      local written = redis.pcall('SET', KEYS[1], record, 'PX', ttl)
      if written.err then -- Redis is full, say: the lock is of no use to this process then
        free(lock, KEYS[3])
        return written
      end
    end
  elseif ttl ~= '' then
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
elseif record == '' or not is(KEYS[1], stamp) then
  -- Another has written or removed the record: one whose lock is elsewhere, or since
  -- the token had the lock for the first time.
  free(lock, KEYS[3])
  return {lost, changed(KEYS[1])}
end
local done = kept()
if to == '' then
  free(lock, KEYS[3])
  return 1
end
set(lock, to, 'PX', ARGV[3])
return done

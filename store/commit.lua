-- Ends the holds of one process up to now: writes the record (or its tombstone), or
-- only puts its time-out off, if the token still has the lock. Then the next holder
-- has it.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue
-- ARGV[1] token    ARGV[2] token of the next holder, '' for none: the lock is freed
-- ARGV[3] its lease in ms
-- ARGV[4] time to live of the record in ms, '' to leave it as it is
-- ARGV[5] record, '' to leave it as it is
-- ARGV[6] its stamp, of either; '' if it has none
-- Returns 1: done; 2: done, and other processes wait; 0: the lock was lost, and nothing
-- was changed.
local lock, to, record, stamp = KEYS[2], ARGV[2], ARGV[5], ARGV[6]

local function done()
  return waiting(KEYS[3]) ~= '' and 2 or 1
end

-- unchanged tells whether nobody has written since the record got its stamp.
local function unchanged()
  local found = redis.pcall('GET', KEYS[1])
  local mine = '{"v":1,"stamp":"' .. stamp .. '"'
  return stamp ~= '' and type(found) == 'string' and string.sub(found, 1, #mine) == mine
end

-- refused gives up the lock: out of memory, say, so that it is of no more use to this
-- process. It is deleted first, since Redis refuses nothing to a script after that.
local function refused(reply)
  redis.call('DEL', lock)
  free(lock, KEYS[3])
  return reply
end

local holder = redis.call('GET', lock)
if holder ~= ARGV[1] then
  -- A repetition finds the next holder's token or, unless another has written since,
  -- its own stamp. And who only read may still do so if that is still right.
  if to ~= '' and holder == to then
    return done()
  end
  if (record ~= '' or to == '') and unchanged() then
    return 1
  end
  return 0
end
if record ~= '' then
  local written = redis.pcall('SET', KEYS[1], record, 'PX', ARGV[4])
  if written.err then
    return refused(written)
  end
elseif ARGV[4] ~= '' then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
if to == '' then
  free(lock, KEYS[3])
  return 1
end
local given = redis.pcall('SET', lock, to, 'PX', ARGV[3])
if given.err then
  return refused(given)
end
return done()

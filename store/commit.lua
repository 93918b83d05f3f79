-- Writes the record (or its tombstone) and releases the lock, if the token still
-- has it.
-- KEYS[1] record   KEYS[2] lock
-- ARGV[1] token    ARGV[2] record   ARGV[3] time to live in ms
-- Returns 1: written; 0: the lock was lost, and nothing was written.
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  -- A repetition finds its own stamp, unless another has written since.
  local record = redis.pcall('GET', KEYS[1])
  local mine = '{"v":1,"stamp":"' .. string.match(ARGV[1], '^%w+') .. '"'
  if type(record) == 'string' and string.sub(record, 1, #mine) == mine then
    return 1
  end
  return 0
end
-- Out of memory, say: the lock is of no more use to this holder.
local done = redis.pcall('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[2])
if done.err then
  return done
end
return 1

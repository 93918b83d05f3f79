-- Takes the lock for a token, if nobody has it.
-- KEYS[1] lock   ARGV[1] token   ARGV[2] lease in ms
-- Returns {1}: the token has the lock; {0, token, time left in ms}: another has
-- it, -1 for one without end, 0 where that may not be asked; {-2}: the key is no
-- lock.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return {1}
end
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then
  if string.find(holder.err, 'WRONGTYPE', 1, true) then
    return {-2}
  end
  return holder
end
-- It may be our own, from a try whose reply was lost.
if holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1}
end
local left = redis.pcall('PTTL', KEYS[1])
return {0, holder, type(left) == 'number' and left or 0}

-- Takes the lock for a token, if nobody has it.
-- KEYS[1] lock    KEYS[2] queue
-- ARGV[1] token   ARGV[2] lease in ms   ARGV[3] place in the queue, '' for none
-- Returns {1}: the token has the lock; {0, token, time left in ms, joined}: another
-- has it, -1 for one without end, 0 where that may not be asked, and joined is what
-- join returns, 0 without a place; {-2}: the key is no lock.
-- include queue.lua
local place = ARGV[3]
-- taken is the answer where the token has the lock. It needs its place no more, not even one
-- that a try that came late has put into the queue again.
local function taken()
  if place ~= '' then
    quit(KEYS[2], place)
  end
  return {1}
end
if set(KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return taken()
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
  return taken()
end
if place ~= '' and holder == place then -- our turn has come
  set(KEYS[1], ARGV[1], 'PX', ARGV[2])
  return taken()
end
local left = redis.pcall('PTTL', KEYS[1])
return {0, holder, type(left) == 'number' and left or 0, place ~= '' and join(KEYS[2], place) or 0}

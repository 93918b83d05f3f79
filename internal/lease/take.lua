-- Takes the lock for a token, if it is free.
-- KEYS[1] lock    KEYS[2] queue
-- ARGV[1] number of the call   ARGV[2] token   ARGV[3] lease in ms   ARGV[4] place in the queue, '' for none
-- Returns {1}: the token has the lock; {0, token, time left in ms, joined}: another token has it. The time
-- is -1 for a lock that does not expire, and 0 if PTTL is not permitted. joined is the result of join, 0
-- without a place. {-2}: the key is not a lock.
{{template "queue"}}
local place = ARGV[4]
-- taken is the result when the token has the lock. The place is then removed from the queue, even if a
-- late try has put it there again.
local function taken()
  if place ~= '' then
    quit(KEYS[2], place)
  end
  return {1}
end
if set(KEYS[1], ARGV[2], 'NX', 'PX', ARGV[3]) then
  return taken()
end
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then
  if string.find(holder.err, 'WRONGTYPE', 1, true) then
    return {-2}
  end
  return holder
end
-- The token may be our own, from a try whose reply was lost. GT: this may be a copy that comes after an Extend.
if holder == ARGV[2] then
  redis.call('PEXPIRE', KEYS[1], ARGV[3], 'GT') -- rule: a lock that is taken again lasts no shorter
  return taken()
end
if place ~= '' and holder == place then -- our turn has come
  set(KEYS[1], ARGV[2], 'PX', ARGV[3])
  return taken()
end
local left = redis.pcall('PTTL', KEYS[1])
left = type(left) ~= 'number' and 0 or left == 0 and 1 or left -- 0 means less than a millisecond to PTTL
return {0, holder, left, place ~= '' and join(KEYS[2], place) or 0}

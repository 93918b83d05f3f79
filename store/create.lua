-- Writes the record of a new id.
-- KEYS[1] record
-- ARGV[1] token   ARGV[2] record   ARGV[3] time to live in ms
-- Returns 1: written; 0: the id is taken.
if redis.call('SET', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[3]) then
  return 1
end
-- It may be our own, from a try whose reply was lost.
local mine = '{"v":1,"stamp":"' .. ARGV[1] .. '"'
if string.sub(redis.call('GET', KEYS[1]), 1, #mine) == mine then
  return 1
end
return 0

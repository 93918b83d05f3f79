-- Writes the record of a new id.
-- KEYS[1] record
-- ARGV[1] its stamp   ARGV[2] record   ARGV[3] time to live in ms
-- Returns 1: written; 0: the id is taken.
-- include record.lua
if redis.call('SET', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[3]) then
  return 1
end
-- It may be our own, from a try whose reply was lost.
return is(KEYS[1], ARGV[1]) and 1 or 0

-- Writes the record of a new id.
-- KEYS[1] record
-- ARGV[1] and ARGV[2] see clock.lua
-- ARGV[3] its stamp   ARGV[4] record   ARGV[5] time to live in ms
-- Returns 1: written; 0: the id is taken; {-1, Unix µs: now}: it has come too late.
-- include clock.lua
-- include record.lua
if late then -- rule: a record that comes late begins no session
  return {-1, now}
end
if redis.call('SET', KEYS[1], ARGV[4], 'NX', 'PX', ARGV[5]) then
  return 1
end
-- It may be our own, from a try whose reply was lost.
return is(KEYS[1], ARGV[3]) and 1 or 0

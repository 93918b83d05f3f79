-- Writes the record of a new ID.
-- KEYS[1] record
-- ARGV[1] number of the call   ARGV[2] and ARGV[3] see clock.lua
-- ARGV[4] its revision   ARGV[5] record   ARGV[6] time to live in ms
-- Returns 1: written; 0: the ID is in use; {-1, Unix µs: now}: it has come too late.
{{template "clock"}}
{{template "record"}}
if late then -- rule: a record that comes late begins no session
  return {-1, now}
end
if redis.call('SET', KEYS[1], ARGV[5], 'NX', 'PX', ARGV[6]) then
  return 1
end
-- The record may be our own, from a try whose reply was lost.
return is(KEYS[1], ARGV[4]) and 1 or 0

-- Removes the record of a new id that came to nothing.
-- KEYS[1] record   ARGV[1] its stamp
-- Returns 1: removed; 0: it was not there, or another's.
-- include record.lua
return is(KEYS[1], ARGV[1]) and redis.call('DEL', KEYS[1]) or 0

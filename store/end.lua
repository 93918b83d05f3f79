-- Ends a session, whatever holds it: what is under way in it meets a tombstone.
-- KEYS[1] record   KEYS[2] of a user's session: list
-- ARGV[1] tombstone   ARGV[2] its time to live in ms
-- Returns 1: ended; 0: there is none; 2: it was ended before.
-- include set.lua
local kind = redis.pcall('GETRANGE', KEYS[1], '28', '36')
if kind == '' then
  -- A replica that has not heard of the record must not deny it: it refuses this.
  redis.call('DEL', KEYS[1])
  return 0
elseif kind == '","gone":' then
  return redis.call('GETRANGE', KEYS[1], '12', '27') == string.sub(ARGV[1], 13, 28) and 1 or 2
end
set(KEYS[1], ARGV[1], 'PX', ARGV[2])
-- of a user: redis.call('ZREM', KEYS[2], member) -- rule: a session that is ended leaves the list
return 1

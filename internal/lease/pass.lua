-- Passes a lock from one token to another of the same process.
-- KEYS[1] lock   KEYS[2] queue
-- ARGV[1] number of the call   ARGV[2] token that has it   ARGV[3] token that gets it   ARGV[4] lease in ms
-- Returns {1, others}: done, and others is 1 if other processes wait; {0, token}: another token has the
-- lock; {-1}: the lock is free.
{{template "queue"}}
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[2] then
  set(KEYS[1], ARGV[3], 'PX', ARGV[4])
elseif holder ~= ARGV[3] then -- a repetition finds this
  return {holder and 0 or -1, holder}
end
return {1, waiting(KEYS[2]) ~= '' and 1 or 0}

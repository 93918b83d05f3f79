-- Gives a lock back, at once or after a while.
-- KEYS[1] lock   KEYS[2] queue   ARGV[1] token   ARGV[2] delay in ms, 0: at once
-- Returns {1}: done; {0, token}: another has the lock; {-1}: nobody has.
-- include queue.lua
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then -- rule: a lock is given back by its token
  if ARGV[2] == '0' then
    free(KEYS[1], KEYS[2])
  else
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  return {1}
end
return {holder and 0 or -1, holder}

-- Releases a lock, at once or after a while.
-- KEYS[1] lock   KEYS[2] queue   ARGV[1] number of the call   ARGV[2] token   ARGV[3] delay in ms, 0: at once
-- Returns {1}: done; {0, token}: another token has the lock; {-1}: the lock is free.
{{template "queue"}}
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[2] then -- rule: a lock is released only by its token
  if ARGV[3] == '0' then
    free(KEYS[1], KEYS[2])
  else
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  end
  return {1}
end
return {holder and 0 or -1, holder}

-- Makes a held lock last for some time from now at least.
-- KEYS[1] lock   ARGV[1] number of the call   ARGV[2] token   ARGV[3] time in ms
-- Returns {1}: done; {0, token}: another token has the lock; {-1}: the lock is free.
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[2] then
  -- GT: a copy, or a renewal that comes late, must not shorten what Extend or UnlockAfter has set since.
  local done = redis.call('PEXPIRE', KEYS[1], ARGV[3], 'GT') -- rule: an extended lock lasts longer
  if done == 0 and redis.pcall('PTTL', KEYS[1]) == -1 then -- somebody has made it last for ever
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  end
  return {1}
end
return {holder and 0 or -1, holder}

-- Makes a held lock end some time from now.
-- KEYS[1] lock   ARGV[1] token   ARGV[2] time in ms
-- Returns {1}: done; {0, token}: another has the lock; {-1}: nobody has.
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1}
end
return {holder and 0 or -1, holder}

-- Takes the lock for a token, if nobody has it.
-- KEYS[1] lock   ARGV[1] token   ARGV[2] lease in ms
-- Returns 1: the token has the lock; 0: another has it.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
-- It may be our own, from a try whose reply was lost.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
return 0

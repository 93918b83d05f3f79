-- Puts the record's time-out off and releases the lock, if the token still has it.
-- KEYS[1] record   KEYS[2] lock
-- ARGV[1] token    ARGV[2] time to live in ms
-- Returns 1: done; 0: the lock was lost, and nothing was changed.
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('DEL', KEYS[2])
return 1

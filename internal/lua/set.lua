-- The part of scripts that write small values that do not stay: a lock, a queue, a tombstone.

-- set is redis.call('SET', ...), but it also works if Redis is full: Redis gives memory to any script that
-- has called a write command. PEXPIRE is a write command, and here it changes nothing: no existing key
-- expires sooner than in a millisecond. A saved record must not be written by set, nor after it.
local function set(...)
  local reply = redis.pcall('SET', ...)
  if reply and reply.err then
    redis.call('PEXPIRE', KEYS[1], '1', 'GT')
    reply = redis.call('SET', ...)
  end
  return reply
end

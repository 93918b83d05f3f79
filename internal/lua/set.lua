-- The part of scripts that write what is small and does not stay: a lock, a queue, a tombstone.

-- set is redis.call('SET', ...), also where Redis is full. Redis refuses no memory to a script
-- that has called a command which writes, and PEXPIRE is one, although it changes nothing here:
-- no key that is there expires sooner than in a millisecond. A record that is saved must not be
-- written by set, nor after it.
local function set(...)
  local reply = redis.pcall('SET', ...)
  if reply and reply.err then
    redis.call('PEXPIRE', KEYS[1], '1', 'GT')
    reply = redis.call('SET', ...)
  end
  return reply
end

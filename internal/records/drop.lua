-- Removes the record of a new id that came to nothing. That of a user's session becomes a tombstone: a
-- login that comes late must not find nothing and put the epoch in the mark that it has brought.
-- KEYS[1] record   KEYS[2] of a user's session: list   ARGV[1] its stamp
-- Returns 1: removed; 0: it was not there, or another's.
-- include record.lua
if not is(KEYS[1], ARGV[1]) then
  return 0
end
-- of a user: redis.call('ZREM', KEYS[2], member)
-- of a user: redis.call('SET', KEYS[1], tombstone, 'PX', 60000)
redis.call('DEL', KEYS[1]) -- not of a user
return 1

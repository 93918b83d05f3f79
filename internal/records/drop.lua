-- Removes the record of a new id that came to nothing. That of a user's session becomes a tombstone: a
-- login that comes late must not find nothing and put the epoch in the mark that it has brought.
-- KEYS[1] record; and of a user's session: KEYS[2] lock   KEYS[3] queue   KEYS[4] mark   KEYS[5] list
-- ARGV[1] number of the call   ARGV[2] its revision
-- Returns 1: removed; 0: it was not there, or another's.
local user = #KEYS > 3
{{template "record"}}
{{template "user"}}
if not is(KEYS[1], ARGV[2]) then
  return 0
end
if user then
  redis.call('ZREM', KEYS[5], string.sub(KEYS[1], -11))
  redis.call('SET', KEYS[1], tombstone, 'PX', 60000)
else
  redis.call('DEL', KEYS[1])
end
return 1

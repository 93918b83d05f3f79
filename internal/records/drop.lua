-- Removes the record of a new ID that is not needed. For a user's session the record becomes a tombstone:
-- otherwise a login that comes late would find nothing, and store its epoch in the mark.
-- KEYS[1] record; and of a user's session: KEYS[2] lock   KEYS[3] queue   KEYS[4] mark   KEYS[5] list
-- ARGV[1] number of the call   ARGV[2] its revision
-- Returns 1: removed; 0: it did not exist, or is another record.
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

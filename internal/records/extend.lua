-- Makes a held lock last for some time from now, and the record longer than the lock: a session that is
-- held does not expire.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue   KEYS[4] mark, of a user's session
-- ARGV[1] number of the call   ARGV[2] token    ARGV[3] time in ms   ARGV[4] revision of the record
-- Returns {1}: done; {0, token}: another token has the lock; {-1}: the lock is free; or a result of
-- changed: another request has written.
local user = #KEYS > 3
{{template "record"}}
{{template "user"}}
local holder = redis.call('GET', KEYS[2])
if holder ~= ARGV[2] then
  return {holder and 0 or -1, holder}
end
if not is(KEYS[1], ARGV[4]) then
  return {changed(KEYS[1])}
end
-- GT: a copy that comes late may find a later hold with the same token, whose lease is longer.
redis.call('PEXPIRE', KEYS[2], ARGV[3], 'GT') -- rule: a renewed lock lasts longer
redis.call('PEXPIRE', KEYS[1], ARGV[3] + 2000, 'GT') -- rule: a record outlasts its renewed lock
return {1}

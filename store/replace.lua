-- Writes the record (or its tombstone), if it is still the one that was loaded.
-- KEYS[1] record   KEYS[2] where the one to be written is, if it is large; see staged.go
-- ARGV[1] base: the name of the record that was loaded, see record.lua; with a ~ see quiet
-- ARGV[2] record, or the beginning of one that is at KEYS[2]
-- ARGV[3] time to live in ms
-- ARGV[4] number of the call, negative for a repetition
-- Returns 1: written; {0, why}: another has written, and nothing was changed; {3, why}: the
-- same, but an earlier try of this call may have been done before that, or may be done yet.
-- why is as changed says.
-- include set.lua
-- include record.lua
local base, ttl = quiet(ARGV[1], ARGV[3])
if is(KEYS[1], base) then -- rule: under another lock only what was read is replaced
  if string.sub(ARGV[2], 29, 37) == '","gone":' then
    set(KEYS[1], ARGV[2], 'PX', ttl) -- a session can be ended, however full Redis is
    -- of a user: redis.call('ZREM', KEYS[2], member)
  elseif KEYS[2] then -- not of a user
  -- of a user: elseif KEYS[3] then
    redis.call('RENAME', KEYS[2], KEYS[1])
    redis.call('PEXPIRE', KEYS[1], ttl)
  else
    redis.call('SET', KEYS[1], ARGV[2], 'PX', ttl)
  end
  return 1
end
if KEYS[2] then -- not of a user
-- of a user: if KEYS[3] and string.sub(ARGV[2], 29, 37) ~= '","gone":' then
  redis.pcall('DEL', KEYS[2]) -- it is not needed
end
if is(KEYS[1], string.sub(ARGV[2], 13, 28)) then
  return 1 -- a repetition
end
return {tonumber(ARGV[4]) < 0 and 3 or 0, changed(KEYS[1])}

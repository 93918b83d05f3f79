-- Writes a record in place of the one that was loaded without the lock, if that is still there,
-- and nobody holds the session or waits for it.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue
-- KEYS[4] where the record to be written is, if it is large; see staged.go
-- ARGV[1] base: the stamp of the record that was loaded
-- ARGV[2] record, or the beginning of one that is at KEYS[4]   ARGV[3] its time to live in ms
-- ARGV[4] number of the call, negative for a repetition
-- Returns 1: written; 0: refused, and nothing was changed; 3: the same, but an earlier try of this
-- call may have been done before that, or may be done yet.

-- absent reports whether there is no key, of any type. Where Redis does not permit the queue
-- there is none.
local function absent(key)
  local left = redis.pcall('PTTL', key)
  return left == -2 or type(left) == 'table' and key == KEYS[3]
end

local staged = KEYS[4] -- not of a user
-- of a user: local staged = KEYS[5] and KEYS[4]
local found = redis.pcall('GETRANGE', KEYS[1], '12', '27')
if found == ARGV[1] -- rule: without the lock only what was read is replaced
  and absent(KEYS[2]) -- rule: without the lock nothing is written that somebody holds
  and absent(KEYS[3]) then -- rule: without the lock nothing is written that somebody waits for
  if staged then
    redis.call('RENAME', staged, KEYS[1])
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  else
    redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  end
  return 1
end
if staged then
  redis.pcall('DEL', staged) -- it is not needed
end
if found == string.sub(ARGV[2], 13, 28) then -- rule: a repeated write without the lock knows its own record
  return 1
end
return tonumber(ARGV[4]) < 0 and 3 or 0 -- rule: a repeated write without the lock does not say that nothing was stored

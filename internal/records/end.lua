-- Ends a session, whatever holds it: what is under way in it meets a tombstone.
-- KEYS[1] record   KEYS[2] of a user's session: list
-- ARGV[1] tombstone   ARGV[2] its time to live in ms
-- Returns 1: ended; 0: there is none; 2: it was ended before; 3: it is no session, and was left as it is.
-- include set.lua
local head = redis.pcall('GETRANGE', KEYS[1], '0', '36')
if type(head) == 'table' then
  return string.find(head.err, 'WRONGTYPE', 1, true) and 3 or head
elseif head == '' then
  -- A replica that has not heard of the record must not deny it: it refuses this.
  redis.call('DEL', KEYS[1])
  return 0
end
local stamp, what = string.match(head, '^{"v":2,"s":"(%w+)","(%a+)":') -- rule: a record is of version 2
if what == 'gone' then
  return stamp == string.sub(ARGV[1], 13, 28) and 1 or 2
elseif what ~= 'c' then -- rule: what is no session is not ended
  return 3
end
set(KEYS[1], ARGV[1], 'PX', ARGV[2])
-- of a user: redis.call('ZREM', KEYS[2], member) -- rule: a session that is ended leaves the list
return 1

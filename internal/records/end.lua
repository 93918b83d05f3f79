-- Ends a session, even if a request holds it: requests under way find a tombstone.
-- KEYS[1] record; and of a user's session: KEYS[2] lock   KEYS[3] queue   KEYS[4] mark   KEYS[5] list
-- ARGV[1] number of the call   ARGV[2] tombstone   ARGV[3] its time to live in ms
-- Returns 1: ended; 0: there is none; 2: it had ended before; 3: it is not a session, and was left as it
-- is.
local user = #KEYS > 3
{{template "set"}}
{{template "user"}}
local head = redis.pcall('GETRANGE', KEYS[1], '0', '36')
if type(head) == 'table' then
  return string.find(head.err, 'WRONGTYPE', 1, true) and 3 or head
elseif head == '' then
  -- A replica that has not received the record must not deny it: it refuses this.
  redis.call('DEL', KEYS[1])
  return 0
end
local revision, what = string.match(head, '^{"v":2,"s":"(%w+)","(%a+)":') -- rule: a record is of version 2
if what == 'gone' then
  return revision == string.sub(ARGV[2], 13, 28) and 1 or 2
elseif what ~= 'c' then -- rule: only a session is ended
  return 3
end
set(KEYS[1], ARGV[2], 'PX', ARGV[3])
if user then
  redis.call('ZREM', KEYS[5], string.sub(KEYS[1], -11)) -- rule: a session that is ended leaves the list
end
return 1

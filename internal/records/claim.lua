-- Notes that somebody has come back with a session of a user, and ends those that it replaces: see
-- unclaimed.go.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue   KEYS[4] mark   KEYS[5] list
-- KEYS[6] and so on: the records of the sessions that it replaces, the newest first
-- ARGV[1] number of the call
-- Returns 0: the session has ended; or {1} and the sessions that have ended now.
local user = true
{{template "set"}}
{{template "user"}}
{{template "unclaimed"}}
local head = redis.pcall('GETRANGE', KEYS[1], '28', '36')
if head == '' or head == '","gone":' then
  return 0
end
local own = string.sub(KEYS[1], -11)
local order, replaced = entries(mark)
local old, result = replaced[own], {1}
if not old then -- rule: a session is claimed once
  return result
end
replaced[own] = nil
for i = 6, #KEYS do
  if old == string.sub(KEYS[i], -11) then -- others may have left the mark since it was read
    -- A session that has ended otherwise is not on the list, and keeps its tombstone. An expired one has no record.
    if redis.call('ZREM', KEYS[5], old) == 1 and redis.call('PTTL', KEYS[i]) ~= -2 then -- rule: a claim names what it has ended
      set(KEYS[i], tombstone, 'PX', 60000) -- rule: a claim ends the sessions that it replaces
      result[#result + 1] = old
    end
    old, replaced[old] = replaced[old], nil
  end
end
set(KEYS[4], withEntries(mark, order, replaced), 'KEEPTTL')
return result

-- Notes that somebody has come back with a session of a user, and ends those that give way to it: see
-- unclaimed.go.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue   KEYS[4] mark   KEYS[5] list
-- KEYS[6] and so on: the records of the sessions that gave way to it when the claimer read the mark. There are no
-- others: what gives way to a session does so since the session began. But some may have ended since, or been claimed.
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
local order, by = entries(mark)
if not by[own] then -- rule: a session is claimed once
  return {1}
end
local leaves = {[own] = true} -- rule: its session, and what is below that, leave the mark
for i = #order, 1, -1 do -- the newest first: what an entry names is newer
  leaves[order[i]] = leaves[order[i]] or leaves[by[order[i]]]
end
local result = {1}
for i = 6, #KEYS do
  local old = string.sub(KEYS[i], -11)
  if leaves[old] then -- rule: a claim ends only what is still below its session
    -- A session that has ended otherwise is not on the list, and keeps its tombstone. An expired one has no record.
    if redis.call('ZSCORE', KEYS[5], old) and redis.call('PTTL', KEYS[i]) ~= -2 then -- rule: a claim names what it has ended
      set(KEYS[i], tombstone, 'PX', 60000) -- rule: a claim ends what is below its session
      result[#result + 1] = old
    end
    -- The list comes behind the record, and the mark comes last. So a claim that Redis breaks off, since a right is missing,
    -- can be done again.
    redis.call('ZREM', KEYS[5], old)
  end
end
local function without(id)
  return leaves[id] and ''
end
set(KEYS[4], string.gsub(mark, ' ~([^ >]+)>[^ ,]+', without), 'KEEPTTL')
return result

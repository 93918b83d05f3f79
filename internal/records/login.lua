-- Writes the record of a new ID, and puts it on the list of its user.
-- KEYS[1] record   KEYS[2] lock   KEYS[3] queue   KEYS[4] mark, see mark.lua   KEYS[5] list
-- ARGV[1] number of the call   ARGV[2] and ARGV[3] see clock.lua
-- ARGV[4] when the request of the login arrived, by the clock of ARGV[2]
-- ARGV[5] its revision   ARGV[6] record, with an epoch of zeros   ARGV[7] time to live in ms
-- ARGV[8] for how many ms the session may live, used or not
-- ARGV[9] the session that it replaces, which must be on the list; '' for none
-- ARGV[10] how many other sessions may be on the list, MaxSessions - 1; -1: any number
-- ARGV[11] '1': a login beyond that is refused
-- ARGV[12] epoch for a user who has none, 15 digits
-- ARGV[13] sessions that give way to it if they are unclaimed, see unclaimed.go: with a space between them
-- ARGV[14] '1': expired sessions were taken off the list before; it may be missing
-- Returns 0: the ID is in use; 2: there are too many sessions; 3: the replaced session has ended; {4}: an
-- unclaimed session would give way, perhaps to an expired one that is still on the list; {-1,
-- Unix µs: now}: it has come too late; {-2, Unix µs: now}: the user's sessions were ended since the
-- request arrived; or {1} and the surplus sessions, which would end first: written.
{{template "clock"}}
{{template "mark"}}
{{template "record"}}
{{template "unclaimed"}}
local nothing = '...........'

-- unclaimed returns the unclaimed sessions on a list, and what each gives way to. One that has ended otherwise is not on
-- the list any more.
local function unclaimed(mark, list)
  local all, by = entries(mark)
  local order, ended = {}, {}
  for i = #all, 1, -1 do -- the newest first: what an entry names is newer
    local id = all[i]
    local newer = ended[by[id]] or by[id] -- rule: what gave way to an ended session gives way to the one above
    if redis.call('ZSCORE', list, id) then
      by[id] = newer
      table.insert(order, 1, id)
    else
      by[id], ended[id] = nil, newer
    end
  end
  return order, by
end

if late then -- rule: a login that comes late begins no session
  return {-1, now}
end
local marked, list, member = KEYS[4], KEYS[5], string.sub(KEYS[1], -11)
local old, most = ARGV[9], tonumber(ARGV[10])
-- The record may exist from a try whose reply was lost.
local again = redis.call('PTTL', KEYS[1]) ~= -2
if again and not is(KEYS[1], ARGV[5]) then
  return 0
end
local known, size = redis.call('GET', marked), redis.call('ZCARD', list)
local mark, calls = size > 0 and known, known and string.match(known, ',.*') or ''
local alive = mark and size or 0 -- list and mark are lost together: without one of them there is no session
if again then
  if alive == 0 or not redis.call('ZSCORE', list, member) then
    return {1} -- the session has ended since
  end
elseif old ~= '' then
  if alive == 0 or not redis.call('ZSCORE', list, old) then -- rule: a session that was ended is not renewed
    if alive == 0 then
      over(list, marked, known)
    end
    return 3
  end
else
  -- A call that is no longer remembered was at least an hour ago.
  local seconds, more = string.match(calls, '(%d+)%+(%d+)')
  local ended = seconds and seconds * 1000000 + more or 0
  if ended > now then -- rule: a clock that was set back locks no user out for long
    redis.call('SET', marked, string.gsub(known, ',[%d+]+', ',' .. time[1] .. '+' .. time[2], 1), 'KEEPTTL')
  end
  if ARGV[4] - math.max(0, ARGV[2] - now) < math.max(ended, now - 3600000000) then -- rule: a login that arrived before its user's sessions were ended is refused
    return {-2, now}
  end
end
local order, by = unclaimed(mark or '', list)
local today, surplus, yielding, result = math.floor(now / 1000), {}, {}, {1}
local named = {}
for id in string.gmatch(ARGV[13], '[^ ]+') do
  named[id] = true
end
for _, id in ipairs(order) do
  if named[id] and by[id] == nothing then
    by[id] = member
  elseif named[id] then -- another login came after it: that one gives way
    named[by[id]] = true
  end
end
if most >= 0 and alive > most then
  for _, other in ipairs(redis.call('ZRANGE', list, '(' .. today, '+inf', 'BYSCORE')) do -- rule: sessions on the list that have not expired count
    if other ~= old and other ~= member and (by[other] or nothing) == nothing then -- rule: what gives way anyway does not count
      local to = surplus
      if by[other] then -- rule: an unclaimed session gives way, and does not count
        to = yielding
      end
      to[#to + 1] = other
    end
  end
  if #surplus > most and ARGV[11] == '1' then
    return again and result or 2
  end
  for i = 1, #surplus - most do
    result[i + 1] = surplus[i]
  end
end
if again then
  return result
end
local crowd = most >= 0 and #surplus + #yielding - most or 0
if crowd > 0 and #yielding > 0 and ARGV[14] ~= '1' then -- rule: no session gives way to an expired one
  return {4}
end
for i = 1, math.min(crowd, #yielding) do
  by[yielding[i]] = member -- rule: unclaimed sessions give way to a login
end
order[#order + 1], by[member] = member, nothing
while #order > 16 do
  table.remove(order, 1) -- it counts as claimed; nothing gives way to the oldest
end
local epoch = mark and string.sub(mark, 1, 15) or ARGV[12]
local text = string.gsub(string.match(mark or epoch, '^[^,]*'), ' ~.*', '')
for _, id in ipairs(order) do
  text = text .. ' ~' .. id .. '>' .. by[id]
end

local head, rest = string.match(ARGV[6], '^(.-,"g":)%d+(.*)$')
-- This comes before all other writes: a full Redis refuses it, but not after the script has written.
redis.call('SET', KEYS[1], head .. epoch .. rest, 'PX', ARGV[7]) -- rule: a login begins with its user's epoch
if mark then
  redis.call('ZREMRANGEBYSCORE', list, '-inf', today)
elseif size > 0 then
  redis.call('DEL', list)
end
-- This comes last, so that the list has at least this session.
redis.call('ZADD', list, today + ARGV[8], member) -- rule: a login is on the list at once
local ends = mark and redis.call('ZRANGE', list, -1, -1, 'WITHSCORES')[2] or today + ARGV[8]
local left = math.max(1, ends - today + 600000) -- rule: a list lasts as long as its sessions
redis.call('PEXPIRE', list, left)
if calls ~= '' then
  left = math.max(left, 3600000)
end
redis.call('SET', marked, text .. calls, 'PX', left)
return result

local function script()
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
-- The part of scripts that may take effect only for a while after they were sent. See clock.go.
-- ARGV[2] when it was sent, in Unix µs of Redis's clock as far as the process knows it; 0: unknown
-- ARGV[3] for how many µs after that it may take effect

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local late = math.abs(now - ARGV[2]) > tonumber(ARGV[3]) -- it has come too late, or with a wrong clock

-- The part of scripts on the mark of a user. The mark consists of: an epoch; the sessions of earlier
-- epochs that are still alive, each after a space; the entries of unclaimed sessions, see unclaimed.lua; and
-- the remembered calls of EndAll, the last one first, each after a comma: SECONDS+MICROSECONDS of Redis's
-- clock, a colon, and the name. See user.go and clock.go.

local nobody = '000000000000000' -- the epoch of no session

-- over ends the sessions of a user whose list or mark is lost.
local function over(list, marked, mark)
  redis.call('DEL', list)
  if mark then
    redis.call('SET', marked, nobody .. (string.match(mark, ',.*') or ''), 'KEEPTTL')
  end
end

-- The part of scripts that compare a record.

-- revisionOf returns the revision of a record, which each write chooses anew. For a value without a
-- revision it returns the SHA-1. So a revision has 16 characters or 40.
local function revisionOf(record)
  local revision = string.match(record, '^{"v":2,"s":"(%w+)"') -- rule: a record is of version 2
  return revision and #revision == 16 and revision or redis.sha1hex(record)
end

-- is reports whether the record at a key has that revision. 'foreign' is the revision of a value that is
-- not a string. A missing record has no revision. A revision of 16 characters is found without reading
-- the whole record, which may be large.
local function is(key, revision)
  local found = #revision == 16 and redis.pcall('GETRANGE', key, '12', '27') or redis.pcall('GET', key)
  if not found then
    return false
  elseif type(found) == 'string' then
    return #revision == 16 and found == revision or #revision == 40 and redis.sha1hex(found) == revision
  elseif not string.find(found.err, 'WRONGTYPE', 1, true) then
    redis.call('GETRANGE', key, '12', '27') -- fails in the same way, and ends the script
  end
  return revision == 'foreign'
end

-- changed says why a record does not have the expected revision: -3: another request has written it; -4:
-- another request has ended it, and there is a tombstone; -5: it is gone.
local function changed(key)
  local found = redis.pcall('GETRANGE', key, '28', '36')
  return found == '' and -5 or found == '","gone":' and -4 or -3
end

-- The part of scripts on the sessions of a user that nobody has come back with: see unclaimed.go. The mark
-- has an entry for each, the oldest first: a space, ~, the session, >, and the newer session that it gives way
-- to, or dots.

-- entries returns the unclaimed sessions of a mark, and what each gives way to.
local function entries(mark)
  local order, by = {}, {}
  for id, newer in string.gmatch(mark, ' ~([^ >]+)>([^ ,]+)') do
    order[#order + 1], by[id] = id, newer
  end
  return order, by
end

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

end

-- The frame. A reply carries the number of its call, which is ARGV[1] of each script: see package
-- scripting.
local reply, call = script(), tonumber(ARGV[1])
if type(reply) == 'number' then
  return 4 * call + reply
elseif not reply.err then
  reply[#reply + 1] = call
end
return reply

local function script()
-- Ends the sessions of a user, even if requests hold them: a session that the mark does not name has
-- ended.
-- KEYS[1] mark, see mark.lua   KEYS[2] list
-- ARGV[1] number of the call   ARGV[2] and ARGV[3] see clock.lua
-- ARGV[4] name of the call
-- ARGV[5] and so on: the sessions that stay
-- Returns {-1, Unix µs: now}: it has come too late; or {Unix µs: now} and the sessions that leave the
-- list, of which some may have expired.
--
-- Each call takes effect once, so that it ends no session that begins after it. The mark remembers for a
-- minute the calls whose copies may still be executed, and the last call for an hour.
--
-- Each call has a new epoch: the next epoch, or the epoch of no session. So no epoch comes back, and
-- neither does a session that was ended.
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

local marked, list, hour = KEYS[1], KEYS[2], '3600000'
if late then -- rule: an EndAll that comes late ends nothing
  return {-1, now}
end
local mark, kept = redis.call('GET', marked), {',' .. time[1] .. '+' .. time[2] .. ':' .. ARGV[4]}
for done, name in string.gmatch(mark or '', ',([%d+]+):(%w+)') do
  if name == ARGV[4] then -- rule: a repeated EndAll ends nothing
    return {now}
  end
  if string.match(done, '%d+') + 61 > tonumber(time[1]) then -- rule: an EndAll of which a copy may be done is remembered
    kept[#kept + 1] = ',' .. done .. ':' .. name
  end
end
local calls = table.concat(kept)
local members, stays, named = redis.call('ZRANGE', list, '0', '-1'), {}, ''
if mark then -- without a mark, the sessions have ended
  for i = 5, #ARGV do
    if not stays[ARGV[i]] and redis.call('ZSCORE', list, ARGV[i]) then
      stays[ARGV[i]] = true
      named = named .. ' ' .. ARGV[i] -- rule: the mark names the sessions that stay
    end
  end
end
-- Deletions come first: sessions can be ended even if Redis is full, and they stay ended even if Redis
-- then refuses to write. Numbers are strings, since the conversion takes Redis a microsecond.
if named == '' then
  redis.call('DEL', list, marked)
  redis.call('SET', marked, nobody .. calls, 'PX', hour) -- rule: an EndAll ends all
  table.insert(members, 1, now)
  return members
end
local epoch = string.format('%d', string.sub(mark, 1, 15) + 1) -- rule: each EndAll has an epoch of its own
local left, result = math.max(hour, redis.call('PTTL', marked)), {now}
redis.call('PEXPIRE', marked, left)
redis.call('SET', marked, epoch .. named .. calls, 'KEEPTTL')
for _, member in ipairs(members) do
  if not stays[member] then
    redis.call('ZREM', list, member)
    result[#result + 1] = member
  end
end
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

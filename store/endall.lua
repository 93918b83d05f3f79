-- Ends the sessions of a user, whatever holds them: those that the mark does not name are over.
-- KEYS[1] list   KEYS[2] mark   KEYS[3] when the user's sessions were ended
-- ARGV[1] and ARGV[2] see clock.lua
-- ARGV[3] name of the call
-- ARGV[4] and so on: the sessions that stay. The last one is the number of the call.
-- Returns {-1, Unix µs: now}: it has come too late; or {Unix µs: now} and the sessions that were on the
-- list and stay no more.
--
-- Each call is done once, so that it ends nothing that begins after it. KEYS[3] has the Unix µs of the
-- last call, and after it the names of those of which a copy may still be done: until when, and the name.
--
-- Each call has an epoch of its own, the next. So none comes back, and with it no session that was ended.
-- include clock.lua
local list, marked, calls = KEYS[1], KEYS[2], KEYS[3]
local now = clock()
if late(now) then -- rule: an EndAll that comes late ends nothing
  return {-1, now}
end
local user = redis.call('MGET', marked, calls)
local mark, done = user[1], string.format('%.0f %.0f %s', now, now + 2 * ARGV[2], ARGV[3])
for before, name in string.gmatch(user[2] or '', ' (%d+) (%w+)') do
  if name == ARGV[3] then -- rule: a repeated EndAll ends nothing
    return {now}
  elseif tonumber(before) > now then -- rule: an EndAll of which a copy may be done is remembered
    done = done .. ' ' .. before .. ' ' .. name
  end
end
local today = math.floor(now / 1000)
local found, kept = redis.call('ZRANGE', list, today, '+inf', 'BYSCORE'), {}
if mark then -- else it is lost, and they are over
  mark = string.format('%d', string.sub(mark, 1, 15) + 1) -- rule: each EndAll has an epoch of its own
  for i = 4, #ARGV - 1 do
    if not kept[ARGV[i]] and redis.call('ZSCORE', list, ARGV[i]) then
      kept[ARGV[i]] = true
      mark = mark .. ' ' .. ARGV[i] -- rule: the mark names the sessions that stay
    end
  end
end
-- What deletes comes first: sessions can be ended, however full Redis is.
if not next(kept) then
  redis.call('DEL', list, marked) -- rule: where no session stays, the mark is gone
else
  for _, member in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    if not kept[member] then
      redis.call('ZREM', list, member)
    end
  end
  redis.call('PEXPIRE', marked, '1', 'GT') -- deletes nothing, if they all stay
  redis.call('SET', marked, mark, 'KEEPTTL')
end
redis.call('SET', calls, done, 'PX', 3600000) -- rule: when the sessions of a user were ended is remembered for an hour
local result = {now}
for _, member in ipairs(found) do
  if not kept[member] then
    result[#result + 1] = member
  end
end
return result

-- Ends the sessions of a user, whatever holds them: those that the mark does not name are over.
-- KEYS[1] list   KEYS[2] mark
-- ARGV[1] Unix ms: now
-- ARGV[2] and so on: the sessions that stay. The last one is the number of the call.
-- Returns the sessions that were on the list and stay no more.
--
-- Each call has an epoch of its own, also one that is repeated or comes late: the next. So none comes
-- back, and with it no session that was ended.
local list, marked = KEYS[1], KEYS[2]
local found, kept, mark = redis.call('ZRANGE', list, ARGV[1], '+inf', 'BYSCORE'), {}, redis.call('GET', marked)
if mark then -- else it is lost, and they are over
  mark = string.format('%d', string.sub(mark, 1, 15) + 1) -- rule: each EndAll has an epoch of its own
  for i = 2, #ARGV - 1 do
    if not kept[ARGV[i]] and redis.call('ZSCORE', list, ARGV[i]) then
      kept[ARGV[i]] = true
      mark = mark .. ' ' .. ARGV[i] -- rule: the mark names the sessions that stay
    end
  end
end
if not next(kept) then
  redis.call('DEL', list, marked) -- rule: where no session stays, the mark is gone
  return found
end
redis.call('PEXPIRE', marked, '1', 'GT') -- sessions can be ended, however full Redis is
redis.call('SET', marked, mark, 'KEEPTTL')
local function drop(members)
  local dropped = {}
  for _, member in ipairs(members) do
    if not kept[member] then
      redis.call('ZREM', list, member)
      dropped[#dropped + 1] = member
    end
  end
  return dropped
end
-- By another process's clock these may not have reached their end yet.
drop(redis.call('ZRANGE', list, '-inf', '(' .. ARGV[1], 'BYSCORE'))
return drop(found)
